"""Run ffmpeg over a source and turn what it writes into renditions.

Begin with `transcode`. Only `ffmpeg` starts the program, and only `command` composes what it does.
"""
