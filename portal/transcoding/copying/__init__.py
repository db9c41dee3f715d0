"""Copy a source's H.264 and AAC into segments, without decoding them, in a confined child process.

Begin with `remux`, the parent's side: it starts the child, follows its progress and interprets its
result. The child's side is `__main__`, run by `python -I -m` with the name of this package:
`tracks` checks packets and decides where segments end, `rendition` writes the files. The source is
read once, in order; one or two segments are in memory.

Limits: MP4 and QuickTime sources; H.264 with its parameters at the beginning and IDR pictures to
cut at; AAC-LC of one or two channels without gaps. Other streams are refused, not repaired.
Frames at the ends of a trimmed film that may depend on hidden ones are left out.
"""
