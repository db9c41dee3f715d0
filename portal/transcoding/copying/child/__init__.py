"""The child process's side: remux one untrusted source. Begin with `remuxing`.

`video` and `audio` judge packets and decide where segments end, `rendition` writes
the files, `fragments` their bytes (pure but for FFmpeg's muxer, which writes init segments).
"""
