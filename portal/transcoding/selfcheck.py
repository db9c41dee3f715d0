"""Check what was written before anyone is told about it. Pure.

Catches what ffmpeg's exit code does not: a source that ended early without an error, a segment
that never arrived, renditions that can't be switched between.
"""

from collections.abc import Mapping

from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.hls import MediaPlaylist
from portal.transcoding.probe import Probe

# The audio may be longer or shorter than the picture, so only the picture is measured. A source
# that decodes with gaps loses a little; what a broken connection cuts off is more.
_SHORTFALL_S = 1.0
_SHORTFALL_SHARE = 0.03
_ALIGNMENT_S = 0.002


def check_output(
    playlists: Mapping[str, MediaPlaylist],
    *,
    sizes_bytes: Mapping[str, int],
    video_names: tuple[str, ...],
    probe: Probe,
) -> None:
    """Raise TranscodeFailed unless everything named was stored and fits together."""
    for name, playlist in playlists.items():
        _check_stored(name, playlist, sizes_bytes)
    videos = [playlists[name] for name in video_names]
    for name, playlist in zip(video_names, videos, strict=True):
        _check_aligned(name, playlist, videos[0])
    _check_duration(videos[0].duration_s, probe)


def _check_stored(name: str, playlist: MediaPlaylist, sizes_bytes: Mapping[str, int]) -> None:
    if not playlist.complete or not playlist.segments or playlist.map_uri is None:
        raise _incomplete(f"the playlist of {name} is not finished")
    for uri in (playlist.map_uri, *(segment.uri for segment in playlist.segments)):
        if not sizes_bytes.get(f"{name}/{uri}"):
            raise _incomplete(f"{name}/{uri} is named but was not stored")
    stored = sum(1 for stored_name in sizes_bytes if stored_name.startswith(f"{name}/"))
    if stored != len(playlist.segments) + 1:
        raise _incomplete(f"{name} stored {stored} files, its playlist names another number")


def _check_aligned(name: str, playlist: MediaPlaylist, reference: MediaPlaylist) -> None:
    same_number = len(playlist.segments) == len(reference.segments)
    if not same_number or any(
        abs(segment.duration_s - other.duration_s) > _ALIGNMENT_S
        for segment, other in zip(playlist.segments, reference.segments, strict=True)
    ):
        raise _incomplete(f"the segments of {name} begin at other times than the lowest rung's")


def _check_duration(written_s: float, probe: Probe) -> None:
    expected_s = probe.video.duration_s
    if expected_s is None:  # fragmented: the file's own claim is often wrong
        return
    tolerance_s = max(_SHORTFALL_S, expected_s * _SHORTFALL_SHARE)
    if written_s < expected_s - tolerance_s:
        raise _incomplete(f"{written_s:.1f} s were written of {expected_s:.1f} s")


def _incomplete(detail: str) -> TranscodeFailed:
    return TranscodeFailed(FailCode.OUTPUT_INCOMPLETE, detail=detail)
