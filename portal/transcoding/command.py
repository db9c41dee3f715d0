"""Compose the one ffmpeg command that makes all renditions of a source. Pure.

One decode feeds every rung: the picture is scaled once to the top rung and each lower rung is
scaled from the one above it. All rungs share the same frames and force keyframes by the same
rule, so their segments begin at the same instants. Not here yet, each with its place marked:
copying a stream that already fits, subtitles.

The source's address stands in argv, which other users of the same machine can list. ffmpeg takes
an input's name nowhere else; a presigned address limits the harm to reading one object for as
long as it is valid. Hand it a short-lived one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from portal.transcoding.ladder import AudioRung, Rung, frame_step
from portal.transcoding.probe import Probe, VideoTrack, source_address

SEGMENT_S = 4
PLAYLIST_NAME = "playlist.m3u8"
INIT_NAME = "init.mp4"
SEGMENT_SUFFIX = ".m4s"
POSTER_PATTERN = "poster-%d.jpg"

_PROGRESS_PERIOD_S = 0.5
_READ_TIMEOUT_US = 30_000_000
_RECONNECT_MAX_S = 15
_VARIABLE_TIME_BASE = "1:90000"
# Above any keyframe distance the forced ones leave, also for a burst of frames.
_KEYFRAME_NEVER = 600
# Measured from the previous keyframe and not from zero: every segment then lasts at least
# SEGMENT_S, which is what the HLS muxer waits for before it starts the next.
_KEYFRAME_RULE = f"expr:if(isnan(prev_forced_t),1,gte(t,prev_forced_t+{SEGMENT_S}))"
# A variable-rate source may burst above the cap; frames closer than this share of 1/fps go.
_BURST_SHARE = 0.75
_MAX_FPS = 60

_POSTER_MAX_WIDTH = 1280
_POSTER_FROM, _POSTER_TO = 0.1, 0.6
_POSTER_CANDIDATES = 5
_POSTER_FRAMES_EACH = 6

# Code points of ISO/IEC 23091-2.
_UNSPECIFIED = 2
_BT2020 = 9
_PQ, _HLG = 16, 18
_HDR_TRANSFERS = {_PQ: "smpte2084", _HLG: "arib-std-b67"}
_SDR_WHITE_NITS = 203
_HD_MIN_HEIGHT = 720
_DEINTERLACER_MIN_PX = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Everything a transcode depends on."""

    source_url: str
    probe: Probe
    rungs: Sequence[Rung]
    audio: AudioRung | None
    work_dir: Path


def transcode_arguments(job: Job) -> tuple[str, ...]:
    """The arguments after the program's name, for a run in `job.work_dir`.

    Output names are relative, because ffmpeg expands percent signs in them. The folders of
    `rendition_dirs` must exist.
    """
    return (
        *_general(),
        *_input(job.source_url),
        *("-filter_complex", filter_graph(job)),
        *(argument for rung in job.rungs for argument in _video_output(job, rung)),
        *(_audio_output(job, job.audio) if job.audio else ()),
        *_poster_output(),
    )


def rendition_dirs(job: Job) -> dict[str, Path]:
    """The folder each rendition is written to, by its name."""
    renditions: list[Rung | AudioRung] = [*job.rungs, *([job.audio] if job.audio else [])]
    return {rendition.name: job.work_dir / rendition.name for rendition in renditions}


def _general() -> tuple[str, ...]:
    return (
        *("-nostdin", "-hide_banner", "-loglevel", "warning", "-nostats", "-y"),
        *("-progress", "pipe:1", "-stats_period", str(_PROGRESS_PERIOD_S)),
    )


def _input(source_url: str) -> tuple[str, ...]:
    address, protocols = source_address(source_url)
    network = (
        *("-rw_timeout", str(_READ_TIMEOUT_US), "-reconnect", "1"),
        *("-reconnect_on_network_error", "1", "-reconnect_on_http_error", "429,5xx"),
        *("-reconnect_delay_max", str(_RECONNECT_MAX_S)),
    )
    return (
        *("-protocol_whitelist", protocols),
        *(network if protocols != "file" else ()),
        *("-f", "mov", "-i", address),
    )


def filter_graph(job: Job) -> str:
    """Prepare the picture, scale it down rung by rung, and branch the poster off."""
    top_down = sorted(job.rungs, key=lambda rung: rung.width * rung.height, reverse=True)
    prepared = ",".join(_prepare(job.probe, top_down[0]))
    graph = [f"[0:{job.probe.video.index}]{prepared}[scaled0]"]
    for place, rung in enumerate(top_down):
        is_last = place == len(top_down) - 1
        poster = "[topost]" if rung is _poster_rung(top_down) else ""
        following = "" if is_last else f"[next{place}]"
        outputs = f"[{rung.name}]{following}{poster}"
        graph.append(f"[scaled{place}]split={outputs.count('[')}{outputs}")
        if not is_last:
            lower = top_down[place + 1]
            graph.append(f"[next{place}]{_scale(lower)}[scaled{place + 1}]")
    graph.append(f"[topost]{','.join(_poster_filters(job, _poster_rung(top_down)))}[poster]")
    return ";".join(graph)


def _prepare(probe: Probe, top: Rung) -> Iterator[str]:
    """From decoded frames (already turned upright by ffmpeg) to the top rung's picture."""
    video = probe.video
    if min(video.coded_width, video.coded_height) >= _DEINTERLACER_MIN_PX:
        yield "bwdif=mode=send_frame:deint=interlaced"
    yield from _thin_out(video)
    # A track may begin late, after its audio; its first picture then stands from the start. One
    # that begins before zero would lose frames: it is moved, unless that would part it from audio.
    shift = "" if probe.audio else "-min(STARTPTS,0)"
    yield f"setpts='if(eq(N,0),0,PTS{shift})'"
    if transfer := _hdr_transfer(video):
        yield from _tone_map(transfer)
        matrix = "bt709"
    else:
        matrix = _assumed_matrix(video)
    yield f"{_scale(top)}:in_color_matrix={matrix}:out_color_matrix=bt709:out_range=tv"
    yield "format=yuv420p"
    yield "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
    yield "setsar=1"


def _thin_out(video: VideoTrack) -> Iterator[str]:
    step = frame_step(video.fps)
    if video.constant_rate:
        if step > 1:
            yield f"framestep={step}"
        return
    target = video.fps / step if step > 1 else Fraction(_MAX_FPS)
    shortest_s = _BURST_SHARE / float(target)
    yield f"select='isnan(prev_selected_t)+gte(t-prev_selected_t,{shortest_s:.6f})'"


def _hdr_transfer(video: VideoTrack) -> str | None:
    """The transfer function of an HDR source, by zscale's name; None for SDR.

    Ten bits in BT.2020 that do not say which are taken for HLG: made to look right on SDR screens
    too, it is the milder mistake.
    """
    is_wide = video.color_primaries == _BT2020 and "10" in video.pix_fmt
    if video.color_transfer == _UNSPECIFIED and is_wide:
        return _HDR_TRANSFERS[_HLG]
    return _HDR_TRANSFERS.get(video.color_transfer)


def _tone_map(transfer: str) -> Iterator[str]:
    """From HDR light to BT.709, in linear floating point, where SDR white is at 203 nits.

    That level is ITU-R BT.2408's. The curve keeps what is darker as it is and folds highlights
    into what is left above.
    """
    yield f"zscale=tin={transfer}:pin=bt2020:min=bt2020nc:t=linear:npl={_SDR_WHITE_NITS}"
    yield "format=gbrpf32le"
    yield "zscale=p=bt709"
    yield "tonemap=mobius:desat=0"
    yield "zscale=t=bt709:m=bt709:r=tv"
    yield "format=yuv420p"


def _assumed_matrix(video: VideoTrack) -> str:
    """Untagged video is BT.709 when HD and BT.601 when not, as players assume too."""
    if video.color_space != _UNSPECIFIED:
        return "auto"
    return "bt709" if min(video.width, video.height) >= _HD_MIN_HEIGHT else "bt601"


def _scale(rung: Rung) -> str:
    return f"scale={rung.width}:{rung.height}:flags=bicubic"


def _video_output(job: Job, rung: Rung) -> tuple[str, ...]:
    constant = job.probe.video.constant_rate
    time_base = f"{rung.fps.denominator}:{rung.fps.numerator}" if constant else _VARIABLE_TIME_BASE
    return (
        *("-map", f"[{rung.name}]", "-map_metadata", "-1", "-map_chapters", "-1"),
        *("-c:v", "libx264", "-preset", "veryfast", "-profile:v", "high", "-pix_fmt", "yuv420p"),
        *("-crf", str(rung.crf), "-maxrate", str(rung.max_bitrate_bps)),
        *("-bufsize", str(rung.buffer_bits)),
        *("-force_key_frames", _KEYFRAME_RULE, "-forced-idr", "1"),
        *("-sc_threshold", "0", "-g", str(_KEYFRAME_NEVER)),
        # Keeps each frame's own time and drops only exact duplicates; the time base decides
        # how finely, and 1/fps is exact for a constant rate such as 30000/1001.
        *("-fps_mode", "vfr", "-enc_time_base", time_base),
        *_hls(rung.name),
    )


def _audio_output(job: Job, audio: AudioRung) -> tuple[str, ...]:
    track = job.probe.audio
    if track is None:
        return ()
    return (
        *("-map", f"0:{track.index}", "-map_metadata", "-1", "-map_chapters", "-1"),
        # Silence for what is missing, at the start and in gaps: audio stays with the picture.
        *("-af", "aresample=async=1:first_pts=0"),
        *("-c:a", "aac", "-b:a", str(audio.bitrate_bps)),
        *("-ac", str(audio.channels), "-ar", str(audio.sample_rate_hz)),
        *_hls(audio.name),
    )


def _hls(folder: str) -> tuple[str, ...]:
    return (
        # Left to itself the muxer delays the picture by its B-frame reordering and the sound not
        # at all. Disabled, both carry the offset in an edit list and begin at zero together.
        *("-avoid_negative_ts", "disabled"),
        *("-f", "hls", "-hls_time", str(SEGMENT_S), "-hls_list_size", "0"),
        *("-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"),
        *("-hls_flags", "independent_segments+temp_file"),
        *("-hls_fmp4_init_filename", INIT_NAME),
        *("-hls_segment_filename", f"{folder}/%05d{SEGMENT_SUFFIX}"),
        f"{folder}/{PLAYLIST_NAME}",
    )


def _poster_rung(top_down: Sequence[Rung]) -> Rung:
    """The smallest rung that is at least as wide as the poster may be, else the largest."""
    wide = [rung for rung in top_down if rung.width >= _POSTER_MAX_WIDTH]
    return wide[-1] if wide else top_down[0]


def _poster_filters(job: Job, rung: Rung) -> Iterator[str]:
    """A few typical frames of the first half; the caller takes the one with most detail."""
    duration_s = job.probe.video.duration_s or job.probe.duration_s
    from_s, to_s = duration_s * _POSTER_FROM, duration_s * _POSTER_TO
    every_s = (to_s - from_s) / (_POSTER_CANDIDATES * _POSTER_FRAMES_EACH)
    yield (
        # The first frame too, for a source that has no other in that stretch.
        f"select='eq(n,0)+between(t,{from_s:.3f},{to_s:.3f})"
        f"*(isnan(prev_selected_t)+gte(t-prev_selected_t,{every_s:.4f}))'"
    )
    yield f"scale={min(rung.width, _POSTER_MAX_WIDTH)}:-2:out_range=pc"
    yield f"thumbnail={_POSTER_FRAMES_EACH}"


def _poster_output() -> tuple[str, ...]:
    return (
        *("-map", "[poster]", "-frames:v", str(_POSTER_CANDIDATES), "-fps_mode", "passthrough"),
        *("-c:v", "mjpeg", "-q:v", "3", "-pix_fmt", "yuv420p", "-color_range", "pc"),
        *("-strict", "unofficial", "-f", "image2"),
        POSTER_PATTERN,
    )
