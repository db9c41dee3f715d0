"""Plan the renditions of a source. Pure: the same probe gives the same plan.

Begin with `ladder.plan_renditions`. `tracks` plans audio and subtitles, `storyboard` the
thumbnails.

Limits: one ladder for all sources. All values were measured with `tests/benchmarks`.
"""
