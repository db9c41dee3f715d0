"""Find out what an untrusted source holds, or refuse it, in a confined child process.

Begin with `probe`, the parent's side: it starts the child, gives its answer a meaning (`facts`)
and decides what is refused. The child's side is `__main__`, run by `python -I -m` of this package:
`boxes` reads what FFmpeg doesn't tell, `source` and `sample_index` what it does, and
`shown_picture` tells how frames are meant to be shown. It imports nothing of the portal outside
this package, so that it starts fast and has little to lose. Where copied streams are cut (`cuts`)
is known to both sides.

Limits: MP4 and QuickTime; an http(s) address or an absolute path; a bounded number of reads.
Imports of the portal only `processes`, `text` and the errors of transcoding.
"""
