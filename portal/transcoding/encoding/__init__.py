"""Make the renditions of a pass, from the source's address to a sink. The only place for ffmpeg.

Begin with `transcode`, which conducts a pass. `command` and `filters` compose what ffmpeg does
(pure), `ffmpeg` runs it under limits and reads what it says, `source_proxy` keeps signed addresses
out of its arguments. `segment_upload` carries segments to the sink meanwhile, `continuation` goes
on after those of an earlier run. `output_validation` judges what was written, `finishing` uploads
what makes it playable. `pictures` makes the posters and storyboards that go with a video.

Limits: one machine; nothing is retried here, and the master playlist is the caller's.
"""
