"""Read and write the formats of HLS. Pure: text and bytes in, text and values out.

Begin with `master`, which has the multivariant playlist and the `FinishedRendition`s that it names.
`hls` has media playlists and their signing, `cmaf` reads segments, `fragments` writes them,
`webvtt` writes subtitles.

Limits: on-demand playlists, and segments as this package's encoder writes them.
"""
