"""Turn an uploaded source into adaptive HLS.

`probing` tells what a source holds or refuses it, `planning` decides what is made of it and in
which passes, `encoding` makes a pass with one ffmpeg decode and hands every file to a `Sink`,
`packaging` writes the playlists. The package knows neither the database nor S3: it reads from an
address and writes to the sink.

Limits: MP4 and QuickTime sources; H.264 and AAC in fragmented MP4 as output; SDR.
"""
