"""Child processes: ffmpeg, the probe, and the processes of `portal up`.

`child` starts a process by means of `confine`, pauses it, enforces time limits and stops it.
`supervisor` keeps a set of processes running; `output` collects their output, `records` has the
files of their state.

Limit: only on Linux a child always ends with its parent; elsewhere `records` ends it at the next
start. Begin reading at `child`.
"""
