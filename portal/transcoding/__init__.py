"""Turn an uploaded source into adaptive HLS.

`probe` tells what a source holds or refuses it, `plan_renditions` decides what is made of it and
in which passes, and `make_renditions` makes a pass with one ffmpeg decode and hands every file to
a `Sink`; `master_playlist` ties the finished renditions together. The package knows neither the
database nor S3: it reads from an address and writes to the sink.

Limits: MP4 and QuickTime sources; H.264 and AAC in fragmented MP4 as output; SDR.
"""

from portal.transcoding.errors import (
    DiskFull,
    FailCode,
    RejectCode,
    SourceRejected,
    TranscodeFailed,
)
from portal.transcoding.frames import cut_frame
from portal.transcoding.hls import (
    MediaPlaylist,
    PlaylistError,
    media_playlist_name,
    parse_media_playlist,
    playlist_uris,
    segment_starts_s,
    sign_playlist,
)
from portal.transcoding.ladder import Plan, Rung, plan_renditions
from portal.transcoding.local import Made, make_renditions
from portal.transcoding.master import MASTER_NAME, Kind, Rendition, master_playlist
from portal.transcoding.notes import Note
from portal.transcoding.pictures import POSTER_NAME
from portal.transcoding.probe import (
    AudioTrack,
    Probe,
    SourceLimits,
    SubtitleTrack,
    VideoTrack,
    probe,
)
from portal.transcoding.progress import OnProgress, Stage
from portal.transcoding.shipping import Sink
from portal.transcoding.storyboard import SPRITE_LINE, STORYBOARD_NAME
from portal.transcoding.tracks import AudioRung, SubtitleRung

__all__ = [
    "MASTER_NAME",
    "POSTER_NAME",
    "SPRITE_LINE",
    "STORYBOARD_NAME",
    "AudioRung",
    "AudioTrack",
    "DiskFull",
    "FailCode",
    "Kind",
    "Made",
    "MediaPlaylist",
    "Note",
    "OnProgress",
    "Plan",
    "PlaylistError",
    "Probe",
    "RejectCode",
    "Rendition",
    "Rung",
    "Sink",
    "SourceLimits",
    "SourceRejected",
    "Stage",
    "SubtitleRung",
    "SubtitleTrack",
    "TranscodeFailed",
    "VideoTrack",
    "cut_frame",
    "make_renditions",
    "master_playlist",
    "media_playlist_name",
    "parse_media_playlist",
    "plan_renditions",
    "playlist_uris",
    "probe",
    "segment_starts_s",
    "sign_playlist",
]
