"""Make a video of an uploaded file: attempts under leases, passes over a source, renditions.

Begin with `service`, then `passes`: one pass is one job of the queue. `attempts` is the lease a
pass runs under, `renditions` what is planned and made, `sources` whether the file is still the one
published, `removal` takes a deleted video's files out of storage.
"""
