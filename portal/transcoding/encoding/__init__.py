"""Make the renditions of a pass, from the source's address to a sink. The only place for ffmpeg.

Begin with `transcode`, which conducts a pass. `command` and `filters` compose what ffmpeg does
(pure), `ffmpeg` runs it under limits, `ffmpeg_log` reads what it says (pure), `source_proxy` keeps
signed addresses out of its arguments. `segment_upload` carries segments to the sink meanwhile.
`output_validation` and `decoding_check` judge what was written, `finishing` and `thumbnails` upload
what makes it playable. `frames` cuts one frame out of a finished rendition, `self_test` tells
whether ffmpeg works at all.

Limits: one machine; nothing is retried here, and the master playlist is the caller's.
"""
