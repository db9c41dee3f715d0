"""Child processes: ffmpeg, the probe, and what `portal up` runs.

`child` starts one, by way of `confine`, pauses it, ends it when it stalls or takes too long, and
stops it. `supervisor` keeps a set of them running, with `output` for what they print and `records`
for the files in which they leave their state.

Limit: that a child ends with its parent, however the parent ends, holds on Linux only; elsewhere
`records` ends it at the next start. Begin reading at `child`.
"""
