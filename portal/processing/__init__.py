"""Make a video of an uploaded file: attempts under leases, passes over a source, renditions.

Begin with `passes`: one pass is one job of the queue. `attempts` has the lease of a pass,
`renditions` the rows of planned and complete renditions; `encoding` runs the engine, and `progress`
records its segments. `runs` are the parts of a pass that workers share, of which `helping` makes
one. `sources` checks that the file is the one that was published, `outputs` writes to storage, and
`removal` deletes the files of a deleted video. `captions` adopts a file's tracks, and `tries`
counts the tries of other jobs.
"""
