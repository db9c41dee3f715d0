"""Copy a source's own H.264 and AAC into segments, without decoding them, in a confined child.

Begin with `remux`, the parent's side: it starts the child, follows it and gives its end a meaning.
The child's side is `__main__`, run by `python -I -m` of this package: `tracks` judges
packets and decides where segments end, `rendition` writes the files. The source is read once, in
order; one or two segments are held in memory.

Limits: MP4 and QuickTime sources; H.264 with its parameters up front and IDR pictures to cut at;
AAC-LC of one or two channels without gaps. Whatever else is found is refused, not repaired.
"""
