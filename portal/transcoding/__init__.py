"""Turn an uploaded source into adaptive HLS, in rooms that know only the ones named before.

`probing` finds out what a source holds or refuses it, `packaging` reads and writes playlists,
segments and WebVTT, `planning` decides which renditions are made of a source and in which passes,
`copying` remuxes what needs no encoding, `encoding` makes a pass with ffmpeg, `speech` writes down
what is said in one of its renditions. `errors` has the codes and sentences of all. Begin with
`encoding.encode` and `encoding.assembly`; `processing.passes` calls one after another.

Limits: MP4 and QuickTime sources; H.264 and AAC in fragmented MP4 as output; SDR. Reads from an
address and writes to a `Sink`: it knows neither the database nor S3. This file imports nothing,
for the sake of the probe's child process.
"""
