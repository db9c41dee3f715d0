"""Make the renditions of a pass with ffmpeg, from the source's address to a sink.

Begin with `encode`: its functions copy the streams, encode a part of the pass, or encode the sound,
and return renditions. `assembly` checks them and stores their playlists. `parts` has the values
(pure): a pass, its parts, segments and renditions. `command` and `filters` compose ffmpeg's
arguments (pure), `ffmpeg` runs it under limits and reads its log, `source_proxy` keeps signed
addresses out of its arguments. `sink` uploads segments while they are made, `output_validation`
checks output. `pictures` makes posters and storyboards.

Limits: one machine. No other package runs ffmpeg. The caller retries, and writes the master
playlist.
"""
