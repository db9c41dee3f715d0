"""Child processes: ffmpeg, the probe, and what `portal up` runs.

`child` starts and stops one, by way of `confine`; `watchdog` pauses one that works, and ends it
when it stalls or takes too long. `supervisor` keeps a set of them running, each
described by a `spec`, with `output` for what they print and `orphans` for what an earlier
supervisor left. `files` writes the small files in which processes leave their state.

Limit: that a child ends with its parent, however the parent ends, holds on Linux only; elsewhere
`orphans` ends it at the next start. Begin reading at `child`.
"""
