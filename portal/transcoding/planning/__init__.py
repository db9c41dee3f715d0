"""Decide what is made of a source. Pure: the same probe gives the same plan.

Begin with `ladder.plan_renditions`. `tracks` plans audio and subtitles, `storyboard` the
thumbnails.

Limits: one ladder for all; every choice was measured with `tests/benchmarks`.
"""
