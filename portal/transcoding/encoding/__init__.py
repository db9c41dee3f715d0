"""Make the renditions of a pass, from the source's address to a sink, with ffmpeg.

Begin with `transcode`, which controls a pass. `command` and `filters` compose ffmpeg's arguments
(pure), `ffmpeg` runs it under limits and reads its log, `source_proxy` keeps signed addresses out
of its arguments. `segment_upload` uploads segments while they are made, `continuation` resumes
after the segments of an earlier run. `output_validation` checks the output, `finishing` uploads the
playlists. `pictures` makes the posters and storyboards of a video.

Limits: one machine. No other package runs ffmpeg. The caller retries, and writes the master
playlist.
"""
