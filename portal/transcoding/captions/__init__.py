"""Read caption files that people made elsewhere: WebVTT, SubRip, YouTube's SBV and TTML. Pure.

Begin with `reading.read_captions`: it returns cues, and a warning for everything it had to guess,
change or leave out. `decoding` finds the character encoding, `times` reads lines of times, `blocks`
and `ttml` split a file into cues, `repairs` mends them. `packaging.webvtt` writes captions.
"""
