"""Read and write the formats of HLS. Pure: text and bytes in, text and values out.

Begin with `master`, the multivariant playlist and the `FinishedRendition`s it names. `hls` are the
media playlists and their signing, `cmaf` looks into segments, `webvtt` cuts subtitles.

Limits: on-demand playlists, and segments as this package's encoder writes them.
"""
