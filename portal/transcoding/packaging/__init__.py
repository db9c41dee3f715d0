"""The formats of the output: HLS playlists, fragmented MP4 (CMAF), WebVTT. Pure."""
