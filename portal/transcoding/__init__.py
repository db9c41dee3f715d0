"""Turn an uploaded source into adaptive HLS.

`probe` tells what a source holds or refuses it, `plan_ladder` decides on the renditions, and
`transcode` makes them with one ffmpeg process and hands every file to a `Sink`. The package knows
neither the database nor S3: it reads from an address and writes to the sink.

Limits: MP4 and QuickTime sources; H.264 and stereo AAC in fragmented MP4 as output; SDR.
"""

from portal.transcoding.errors import FailCode, RejectCode, SourceRejected, TranscodeFailed
from portal.transcoding.hls import (
    MediaPlaylist,
    PlaylistError,
    parse_media_playlist,
    sign_playlist,
)
from portal.transcoding.ladder import AudioRung, Rung, plan_audio, plan_ladder
from portal.transcoding.local import MASTER_NAME, POSTER_NAME, Output, Rendition, Stage, transcode
from portal.transcoding.probe import AudioTrack, Probe, VideoTrack, probe
from portal.transcoding.shipping import Sink

__all__ = [
    "MASTER_NAME",
    "POSTER_NAME",
    "AudioRung",
    "AudioTrack",
    "FailCode",
    "MediaPlaylist",
    "Output",
    "PlaylistError",
    "Probe",
    "RejectCode",
    "Rendition",
    "Rung",
    "Sink",
    "SourceRejected",
    "Stage",
    "TranscodeFailed",
    "VideoTrack",
    "parse_media_playlist",
    "plan_audio",
    "plan_ladder",
    "probe",
    "sign_playlist",
    "transcode",
]
