"""Make a video of an uploaded file: attempts under leases, passes over a source, renditions.

Begin with `passes`: one pass is one job of the queue. `attempts` is the lease a pass runs under,
`renditions` what is planned and made, `encoding` runs the engine and `progress` records what it
did. `runs` are the parts of a pass that workers share, of which `helping` makes one. `sources`
tells whether the file is still the one published, `outputs` what lies in storage, `removal` takes a
deleted video's files out of it.
"""
