"""Validate the output of a pass before it is published, and compile notes for the editor.

The checks find faults that ffmpeg's exit code doesn't show: a source that ended early without an
error, a missing segment, renditions that can't be switched between, segments that don't decode.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from portal.transcoding import errors
from portal.transcoding.encoding import command, ffmpeg
from portal.transcoding.encoding.parts import JOIN_TOLERANCE_S, Rendition
from portal.transcoding.packaging.cmaf import SegmentError, SegmentFacts
from portal.transcoding.packaging.hls import INIT_NAME, MediaPlaylist
from portal.transcoding.planning.downmix import downmix
from portal.transcoding.planning.ladder import frame_step
from portal.transcoding.probing.facts import Probe

# Least share of a damaged source that must decode.
MIN_DECODED_SHARE = 0.9
# Shortfall of a picture that counts as the end of a source that broke off.
_SHORTFALL_S = 1.0
_DECODING_LIMIT_S = 120.0
# The loop filter, which takes a third of the time, finds no faults.
_STRICTLY = ("-threads", "1", "-err_detect", "explode", "-skip_loop_filter", "all")
# Seconds of each sampled segment that are decoded. A copy may be broken anywhere, an encoded
# segment from its first frames on. Decoding all of an encoded segment would take a twentieth of the
# pass of a short film.
COPIED_SAMPLE_S = 60.0
ENCODED_SAMPLE_S = 1.0
# Number of a segment amid the film, per second of its duration; segments last up to ten seconds.
_MIDDLE_PER_S = 1 / 20
_SELF_TEST_LIMIT_S = 15.0
# Notes on sound that FFmpeg has no decoder for, by the sample entry.
_UNSUPPORTED_SOUND = {
    "apac": errors.Note.APPLE_SPATIAL_UNSUPPORTED,
    **dict.fromkeys(("mha1", "mha2", "mhm1", "mhm2"), errors.Note.MPEG_H_UNSUPPORTED),
    "ac-4": errors.Note.AC_4_UNSUPPORTED,
}
# A decoder leaves out a few frames where it joins an open group of pictures, which is no damage.
_NOTED_DAMAGE_SHARE = 0.005


@contextmanager
def refusing_unreadable() -> Iterator[None]:
    """Raise TranscodeFailed instead of the SegmentError of the block."""
    try:
        yield
    except SegmentError as exc:
        raise _incomplete(str(exc)) from exc


def check_complete(renditions: Mapping[str, Rendition], names: Collection[str]) -> None:
    """Raise TranscodeFailed if a segment of these renditions is missing or empty."""
    for name in names:
        segments = renditions[name].segments if name in renditions else ()
        numbers = [segment.number for segment in segments]
        if not numbers or numbers != list(range(len(numbers))):
            raise _incomplete(f"segments of {name} are missing")
        empty = [segment.uri for segment in segments if not segment.size_bytes]
        if empty:
            raise _incomplete(f"{name}/{empty[0]} is empty")


def check_aligned(
    name: str, playlist: MediaPlaylist, starts_s: Sequence[float], *, frame_s: float
) -> None:
    """Raise TranscodeFailed unless a rendition's segments begin at these times."""
    own_s = playlist.starts_s
    if len(own_s) != len(starts_s) or any(
        abs(start_s - other_s) > frame_s + JOIN_TOLERANCE_S
        for start_s, other_s in zip(own_s, starts_s, strict=True)
    ):
        raise _incomplete(f"the segments of {name} begin at other times than the others'")


def damaged_share(probe: Probe, report: ffmpeg.RunReport) -> float:
    """Return the share of the source that is missing, did not decode, or decoded with faults."""
    faulty = report.faults / report.packets if report.packets else 0.0
    return max(1.0 - probe.readable_share, faulty)


def check_damage(share: float) -> None:
    """Raise SourceRejected if too much of the source is damaged."""
    if share > 1.0 - MIN_DECODED_SHARE:
        raise errors.SourceRejected(
            errors.RejectCode.DAMAGED, detail=f"{share:.0%} could not be decoded"
        )


def check_source_read(probe: Probe, report: ffmpeg.RunReport) -> None:
    """Raise TranscodeFailed if storage may be the cause of missing frames or faults."""
    packets = report.packets
    is_short = report.frames_decoded is not None and packets < (probe.video.frame_count or 0)
    if report.network_faults and (report.faults or is_short):
        detail = f"{packets} packets were read, {report.faults} of them with faults"
        raise errors.TranscodeFailed(errors.FailCode.SOURCE_UNREACHABLE, detail=detail)


def check_duration(written_s: float, expected_s: float | None) -> None:
    """Raise SourceRejected if a picture is much shorter than expected."""
    if expected_s is None:  # fragmented files, which often claim a wrong length
        return
    if written_s < min(expected_s - _SHORTFALL_S, expected_s * MIN_DECODED_SHARE):
        detail = f"{written_s:.1f} s of {expected_s:.1f} s were written"
        raise errors.SourceRejected(errors.RejectCode.DAMAGED, detail=detail)


def check_frames(probe: Probe, report: ffmpeg.RunReport) -> None:
    """Raise SourceRejected if many frames are missing.

    In a film with repeated frames, `check_duration` can't see that the source ended early.
    """
    expected = (probe.video.frame_count or 0) * probe.readable_share
    if report.frames_decoded is not None and report.packets < expected * MIN_DECODED_SHARE:
        detail = f"{report.packets} of {expected:.0f} frames were read"
        raise errors.SourceRejected(errors.RejectCode.DAMAGED, detail=detail)


def check_copy(facts: Sequence[SegmentFacts], probe: Probe, *, left_out_frames: int = 0) -> None:
    """Check the segments of a copied stream against the probe of its source.

    Raises CopyUndeliverable unless they have all frames but those that were left out, and players
    can switch at each.
    """
    if not all(fact.is_closed for fact in facts):
        raise errors.CopyUndeliverable("open_segment")
    frames = sum(fact.sample_count for fact in facts) + left_out_frames
    expected = probe.video.frame_count
    if frames != expected:
        raise errors.CopyUndeliverable("frames_missing", detail=f"{frames} frames of {expected}")


def _incomplete(detail: str) -> errors.TranscodeFailed:
    return errors.TranscodeFailed(errors.FailCode.OUTPUT_INCOMPLETE, detail=detail)


def is_sampled(number: int, duration_s: float) -> bool:
    """Return whether a segment of a film of this length is checked: the first or a middle one."""
    return number in (0, int(duration_s * _MIDDLE_PER_S))


async def check_decoding(segment: Path, *, first_s: float) -> None:
    """Raise TranscodeFailed if the first seconds of a segment don't decode.

    The init segment is expected in the same folder.
    """
    file = await asyncio.to_thread(_with_init, segment)
    reading = (*_STRICTLY, "-t", str(first_s), *command.own_file(file))
    arguments = (*command.general_options(), "-xerror", *reading, "-f", "null", "-")
    try:
        await ffmpeg.run(arguments, timeout_s=_DECODING_LIMIT_S)
    except errors.TranscodeFailed as exc:
        raise errors.TranscodeFailed(errors.FailCode.OUTPUT_INCOMPLETE, detail=exc.detail) from exc


def _with_init(segment: Path) -> Path:
    joined = segment.with_suffix(".mp4")
    joined.write_bytes(segment.with_name(INIT_NAME).read_bytes() + segment.read_bytes())
    return joined


async def check_ffmpeg() -> None:
    """Encode one frame. Raises TranscodeFailed or OSError if ffmpeg doesn't work."""
    raw = ("-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", "64x64", "-i", "/dev/zero")
    encode = ("-frames:v", "1", "-c:v", "libx264", "-f", "null", "-")
    await ffmpeg.run((*command.general_options(), *raw, *encode), timeout_s=_SELF_TEST_LIMIT_S)


def notes_for(
    probe: Probe,
    *,
    damaged_share: float,
    lacks_sound: bool = False,
    left_out: Collection[errors.Note] = (),
) -> tuple[errors.Note, ...]:
    """Return the notes for the editor on a source of which this share did not decode.

    `left_out` are the notes on subtitles.
    """
    mixes = [downmix(track) for track in probe.audio]
    is_surround = [
        track.channels > 2 and not (mix.is_spatial or mix.leaves_out)
        for track, mix in zip(probe.audio, mixes, strict=True)
    ]
    applies = {
        errors.Note.PARTLY_DAMAGED: damaged_share > _NOTED_DAMAGE_SHARE,
        errors.Note.HDR_CONVERTED: probe.video.is_hdr,
        errors.Note.DOLBY_VISION_UNCONVERTED: probe.video.dolby_only,
        errors.Note.LOG_UNCONVERTED: probe.video.is_log,
        errors.Note.SIZE_CHANGES_FITTED: probe.video.changes_size,
        errors.Note.DEINTERLACED: probe.video.interlaced,
        errors.Note.FRAME_RATE_REDUCED: frame_step(probe.video.fps) > 1,
        errors.Note.NO_AUDIO: not (probe.audio or probe.unheard),
        errors.Note.SOUND_LEFT_OUT: lacks_sound or "" in probe.unheard,
        errors.Note.SURROUND_DOWNMIXED: any(is_surround),
        errors.Note.SPATIAL_DOWNMIXED: any(mix.is_spatial for mix in mixes),
        errors.Note.CHANNELS_LEFT_OUT: any(mix.leaves_out for mix in mixes),
        errors.Note.TELEMETRY_LEFT_OUT: probe.has_telemetry,
        errors.Note.OTHER_PICTURE_LEFT_OUT: probe.has_other_picture,
        errors.Note.EDITS_UNFOLLOWED: not probe.edits_followed,
        errors.Note.FRAMES_MISPLACED: probe.video.misplaced_frames > 0,
    }
    applies |= dict.fromkeys(left_out, True)
    if not probe.audio:
        unsupported = [entry for entry in probe.unheard if entry]
        applies |= {
            _UNSUPPORTED_SOUND.get(entry, errors.Note.SOUND_UNSUPPORTED): True
            for entry in unsupported[:1]
        }
    return tuple(note for note in errors.Note if applies.get(note))
