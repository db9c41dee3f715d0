"""The child process's side: parse one untrusted source. Begin with `examine`.

Imports nothing of the portal outside this package, so that it starts fast and has little to lose.
`boxes` reads what FFmpeg doesn't tell, `sample_index` and `streams` what it does.
"""
