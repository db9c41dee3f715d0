"""Make a video of an uploaded file: attempts under leases, passes over a source, renditions.

Begin with `first_pass` and `later_passes`: each pass is one job of the queue. Both use `passes`,
which has the steps of a pass. `attempts` has the lease of an attempt at a pass, `renditions` the
rows of planned and complete renditions. `encoding` takes the missing parts of a pass from `parts`
and encodes them, for this worker's pass or as help with another's; `progress` renews leases and
records segments. `sources` checks that the file is the one that was published, `outputs` writes to
storage, and `removal` deletes the files of a deleted video. `jobs` declares the jobs about
versions, and `storyboards` makes previews for the time bar. `captions` names tracks in playlists.
`versions` changes the current version of a video; `version_hooks` says how features follow.
"""
