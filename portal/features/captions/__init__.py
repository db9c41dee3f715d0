"""Captions, chapters and transcription: texts in the times of the film that viewers get.

Begin with `service`. `versions` follows a change of the current version, `transcription` writes
captions from speech.
"""
