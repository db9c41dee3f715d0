"""Turn an uploaded source into adaptive HLS. Each package imports only those named before it.

`probing` finds out what a source contains, or refuses it. `packaging` reads and writes playlists,
segments and WebVTT. `planning` decides which renditions are made of a source and in which passes.
`copying` remuxes what needs no encoding, `encoding` encodes and assembles with ffmpeg, and `speech`
transcribes a rendition. `errors` has the codes and messages of all. Begin with `encoding.encode`
and `encoding.assembly`, whose functions `films.whole_films` calls in turn.

Limits: MP4 and QuickTime sources; H.264 and AAC in fragmented MP4 as output; SDR. Reads from an
address and writes to a `Sink`: it knows neither the database nor S3. This file imports nothing,
for the sake of the probe's child process.
"""
