"""Compose the ffmpeg commands of a pass. Pure.

`part_arguments` decodes a part of the source once for all renditions that need encoding. They begin
their segments at the same times: key frames are forced, by a list of times or by a rule.
`sound_arguments` reads the whole source for sound and subtitles.

The source's name is part of argv, which other users of the machine can list. `source_proxy`
replaces a signed address by a name that reveals nothing.
"""

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from portal.transcoding.encoding import filters
from portal.transcoding.encoding.parts import Part, Pass
from portal.transcoding.packaging.avc import free_number
from portal.transcoding.packaging.cmaf import first_media_time, time_scale
from portal.transcoding.packaging.hls import INIT_NAME, PLAYLIST_NAME
from portal.transcoding.planning.ladder import CRF, PRESET, Plan, Rung, capped_fps
from portal.transcoding.planning.tracks import AudioRung, TrackRung
from portal.transcoding.probing.edits import OPEN_EDITS
from portal.transcoding.probing.facts import Probe, Spans, VideoTrack
from portal.transcoding.probing.probe import reading_options, source_address
from portal.transcoding.probing.segment_bounds import SEGMENT_S, SHORTEST_END_S

SEGMENT_SUFFIX = ".m4s"
SEGMENT_PATTERN = f"%05d{SEGMENT_SUFFIX}"
# Twelve hours of dense dialogue take half of this.
MAX_SUBTITLE_BYTES = 4 * 1024**2

_PIXELS_FOR_ALL_THREADS = 1920 * 1080
_PROGRESS_PERIOD_S = 0.5
# Drops the source's metadata: the place of recording is private.
BARE = ("-map_metadata", "-1", "-map_chapters", "-1")
# Damage of the source is judged after the run.
_TOLERANT = ("-max_error_rate", "1")
KEY_FRAMES_ONLY = ("-skip_frame", "nokey")
# Makes times count from the film's start in a part that begins later. Sound can't have this option:
# it begins before zero with samples that the decoder discards, so its first time would be negative.
_LATER_START = "+frag_discont"
# Allowed drift of sound: half of what is noticed (ITU-R BT.1359: 45 ms early).
_MAX_DRIFT_S = 0.02
# The end of encoded sound is known to a few frames.
_UNCERTAIN_END_S = SHORTEST_END_S
# Fills the start and gaps with silence, so that sound stays in sync.
_IN_SYNC = f"aresample=async=1:min_hard_comp={_MAX_DRIFT_S}:first_pts=0"
_SAMPLE_RATE_HZ = 48_000
# Length of the parts of sound that are silenced or not.
_SILENCED_SAMPLES = 48
# Softens channels that add up to more than full scale. The limiter follows the filling of gaps,
# because `latency` keeps sound at its time only there.
_LIMITER = "alimiter=level=0:latency=1"
# The filter `pan` moves channels instead of mixing them if all gains are 1, and confuses those in
# an unusual order.
_NEARLY_WHOLE = 0.9999
_FRAME_GROWTH = 4
_MIN_MAX_PIXELS = 1920 * 1080
_OWN_TIME_BASE = Fraction(1, 90_000)
# More frames than ever lie between forced key frames. Beside a copy, a segment lasts up to 12.6 s,
# which are 920 frames at the highest rate; a burst may add some.
_KEYFRAME_NEVER = 2000
# Shorter than any frame, so each key frame begins a segment.
_EVERY_KEYFRAME_S = 0.001
# The distance counts from the previous key frame, not from zero: only the last segment is short.
_KEYFRAME_RULE = f"expr:if(isnan(prev_forced_t),1,gte(t,prev_forced_t+{SEGMENT_S}))"
# Players decide by a sample's duration which frame they show, and the encoder only guesses it. This
# filter sets the true distance between frames, which are decoded in the order in which they are
# shown. The film's last frame lasts until the picture's end, where that is known, else as guessed.
_TRUE_DURATIONS = "setts=duration='if(eq(NEXT_PTS,NOPTS),max(1,{last}),NEXT_PTS-PTS)'"
# Removes the times of misplaced frames, which then follow the frames before them. Decode times are
# removed too, because FFmpeg would doubt all later times otherwise.
_MISPLACED = "setts=pts='if(gt(PTS*TB,{after_s:.6f}),NOPTS,PTS)':dts=NOPTS"
_MISPLACED_AFTER_S = 5  # half of the probe's limit
# Limit on making the last frame longer: a source that breaks off early must not seem complete.
_MAX_LENGTHENED_S = 1.0
# Fits segments to the time scale and the edit list of another encoder's init segment.
_DELAYED = ",setts=time_base=1/{scale}:prescale=1:pts=PTS:dts=PTS-{delay}"
# A later part is decoded from a key frame at least this long before the first encoded frame:
# frames just after a key frame may depend on frames before it, and a deinterlacer looks back.
_LEAD_IN_S = 1
# Share of the decoder's buffer that a later part assumes to be filled, because the share that the
# part before it leaves is unknown. In 36 s of a street (540p, and rungs below at their caps), VMAF
# of the 2 s around the join is then within 0.4 of that of one part, and no window exceeds the
# buffer. With 0.5 VMAF is up to 2.7 lower; with 0.7 it is 2.1 higher, and windows take 1.4 times
# the buffer.
_LATER_BUFFER = 0.6
# Frames that a part decodes after its end: the deinterlacer and the filters for durations see a few
# frames ahead.
_FRAMES_AFTER = 5


def part_arguments(source_name: str, of_pass: Pass, part: Part) -> tuple[str, ...]:
    """Return ffmpeg's arguments for a part of a pass in the working folder.

    Output names are relative, because ffmpeg expands percent signs in them. The folder must contain
    a folder for each rendition, named after it.
    """
    probe = of_pass.probe
    after_s = part.after_s(of_pass)
    graph = filters.filter_graph(
        probe,
        of_pass.rungs,
        is_snapped=of_pass.is_snapped,
        after_s=after_s,
        end_s=_end_s(of_pass, part),
        held_until_s=of_pass.plan.picture_s if of_pass.plan.is_held else None,
        repeats=_repeats(of_pass, part),
    )
    lead_in_s = _lead_in_s(probe.video)
    from_s = float(after_s or 0) - lead_in_s
    for hidden_s, until_s in reversed(probe.video.hidden):
        # The part may show a frame from before the span.
        if hidden_s < float(after_s or 0) and from_s < until_s:
            from_s = min(from_s, hidden_s - lead_in_s)
    # Reading begins at a key frame.
    seek = ("-noaccurate_seek",) if from_s > 0 else ()
    return (
        *general_options(),
        *_TOLERANT,
        *source_input(source_name, probe, *seek, from_s=max(0.0, from_s)),
        *("-filter_complex", graph),
        *(argument for rung in of_pass.rungs for argument in _video_output(of_pass, part, rung)),
    )


def _lead_in_s(video: VideoTrack) -> float:
    """Return how long before a later part the key frame is from which it is decoded, at least.

    A "key frame" of H.264 may only be where a gradual refresh begins. Its pictures are whole by the
    next one.
    """
    has_refresh = video.codec == "h264" and not video.closed_gops
    return _LEAD_IN_S + (video.max_key_distance_s or 0.0 if has_refresh else 0.0)


def _repeats(of_pass: Pass, part: Part) -> filters.Repeats:
    """Return when frames are repeated in a picture that stands still: where segments begin.

    Segments of a part may begin at any time, if the part is a single one.
    """
    end = part.end(of_pass.starts_s)
    if of_pass.starts_s is None or end != part.first + 1:
        return filters.EVEN_REPEATS
    start_s = of_pass.starts_s[part.first]
    end_s = of_pass.starts_s[end]
    return filters.Repeats(start_s or end_s, end_s - start_s)


def _end_s(of_pass: Pass, part: Part) -> float | None:
    """Return the time after which a part needs no frames; None at the end of the film.

    The first frame of the segment that follows ends the last segment of the part.
    """
    end = part.end(of_pass.starts_s)
    if end is None or of_pass.starts_s is None:
        return None
    video = of_pass.probe.video
    frame_s = float(1 / capped_fps(video.fps))
    longest_s = 0.0 if of_pass.plan.is_held else video.longest_frame_s or 0.0
    return of_pass.starts_s[end] + longest_s + _FRAMES_AFTER * frame_s


def sound_arguments(
    source_name: str,
    probe: Probe,
    plan: Plan,
    audio: Sequence[AudioRung],
    subtitles: Sequence[TrackRung],
) -> tuple[str, ...]:
    """Return ffmpeg's arguments for sound and subtitles, as `part_arguments`."""
    # FFmpeg pads sound when the input of the track has ended, and an input ends with its longest
    # track. So where a track ends long before another, each sound is read from a separate input.
    ends_s = [probe.video.duration_s, *(track.end_s for track in probe.audio)]
    known_s = [end_s for end_s in ends_s if end_s is not None]
    is_uneven = max(known_s, default=0) - min(known_s, default=0) > SEGMENT_S
    inputs = {rung.name: number if is_uneven else 0 for number, rung in enumerate(audio, 1)}
    sources = source_input(source_name, probe)
    for _ in range(max(inputs.values(), default=0)):
        sources += source_input(source_name, probe)
    return (
        *general_options(),
        *_TOLERANT,
        *sources,
        *(
            argument
            for rung in audio
            for argument in _audio_output(probe, plan, rung, inputs[rung.name])
        ),
        *(argument for rung in subtitles for argument in _subtitle_output(rung)),
    )


def subtitle_file(rung: TrackRung) -> str:
    """Return the name of the file with a whole subtitle track, before it is cut."""
    return f"{rung.name}/all.vtt"


def general_options() -> tuple[str, ...]:
    """Return the options of all runs: ask nothing, and report progress."""
    progress = ("-progress", "pipe:1", "-stats_period", str(_PROGRESS_PERIOD_S))
    return ("-nostdin", "-hide_banner", "-nostats", "-y", *progress)


def source_input(
    source_url: str, probe: Probe, *options: str, from_s: float = 0.0
) -> tuple[str, ...]:
    """Return the arguments that read a source as another input, with these options.

    Frames have the times of the film, also if reading begins later, at `from_s`.
    """
    address, protocols = source_address(source_url)
    reading = reading_options(protocols)
    # The probe decoded a few frames only, and others may claim any size.
    known_pixels = probe.video.coded_width * probe.video.coded_height
    max_pixels = max(_MIN_MAX_PIXELS, known_pixels * _FRAME_GROWTH)
    # FFmpeg may cut an aperture that the probe found invalid.
    cropping = "all" if any(probe.video.margins) else "codec"
    seek: tuple[str, ...] = ()
    if from_s or probe.lead_s:
        seek = ("-ss", f"{from_s + (probe.lead_s or 0):.6f}", "-itsoffset", f"{from_s:.6f}")
    if probe.lead_s is not None:
        reading |= OPEN_EDITS
    if probe.video.misplaced_frames and probe.video.duration_s:
        misplaced = _MISPLACED.format(after_s=probe.video.duration_s + _MISPLACED_AFTER_S)
        options = ("-bsf:v", misplaced, *options)
    return (
        *(argument for name, value in reading.items() for argument in (f"-{name}", value)),
        *("-max_pixels", str(max_pixels), "-apply_cropping", cropping),
        *(*options, *seek, "-f", "mov", "-i", address),
    )


def own_file(name: str | Path, *, demuxer: str = "mov") -> tuple[str, ...]:
    """Return the arguments that read a file in the working folder, and no file that it names."""
    return ("-protocol_whitelist", "file", "-f", demuxer, "-i", f"file:{name}")


def jpeg_output(name: str, quality: int) -> tuple[str, ...]:
    """Return the arguments that write one picture; `quality` is from 2, the best, to 31."""
    frames = ("-frames:v", "1", "-update", "1", "-fps_mode", "passthrough")
    encoder = ("-c:v", "mjpeg", "-q:v", str(quality), "-pix_fmt", "yuv420p", "-color_range", "pc")
    return (*frames, *encoder, "-strict", "unofficial", "-f", "image2", name)


def _video_output(of_pass: Pass, part: Part, rung: Rung) -> tuple[str, ...]:
    tick = filters.time_base(rung.fps) if of_pass.is_snapped else _OWN_TIME_BASE
    buffer: tuple[str, ...] = ()
    if part.first:
        buffer = ("-rc_init_occupancy", str(round(rung.buffer_bits * _LATER_BUFFER)))
    timing = _durations(of_pass)
    fitting: tuple[str, ...] = ()
    ticks_per_s = None
    if init := of_pass.foreign_inits.get(rung.name):
        ticks_per_s = time_scale(init)
        timing += _DELAYED.format(scale=ticks_per_s, delay=first_media_time(init))
        fitting = ("-x264-params", f"sps-id={free_number(init)}")
    return (
        *("-map", f"[{rung.name}]", *BARE),
        *("-c:v", "libx264", "-preset", PRESET, "-profile:v", "high", "-pix_fmt", "yuv420p"),
        *("-threads", str(_threads(rung))),
        # Players differ in how they treat the decode times that B-frames need.
        *("-bf", "0", "-crf", str(CRF), "-maxrate", str(rung.max_bitrate_bps)),
        *("-bufsize", str(rung.buffer_bits), *buffer, *fitting),
        *("-force_key_frames", _keyframes(of_pass, part), "-forced-idr", "1"),
        *("-sc_threshold", "0", "-g", str(_KEYFRAME_NEVER)),
        # Frames keep their times, to the time base; only exact duplicates are dropped.
        *("-fps_mode", "vfr", "-enc_time_base", f"{tick.numerator}:{tick.denominator}"),
        *("-bsf:v", timing),
        *_hls(rung.name, segment_s=_EVERY_KEYFRAME_S, part=part, ticks_per_s=ticks_per_s),
    )


def _durations(of_pass: Pass) -> str:
    """Return the bitstream filter that sets the duration of frames."""
    picture_s = of_pass.plan.picture_s
    last_frame_s = of_pass.probe.video.last_frame_s
    if picture_s is None or last_frame_s is None:
        return _TRUE_DURATIONS.format(last="DURATION")
    last_s = SEGMENT_S if of_pass.plan.is_held else picture_s - last_frame_s
    last = f"min({picture_s:.6f}/TB-PTS,{last_s + _MAX_LENGTHENED_S:.6f}/TB)"
    return _TRUE_DURATIONS.format(last=last)


def _threads(rung: Rung) -> int:
    """Return the number of encoder threads of a rung: its share of the processors, and one more.

    The rungs run at the same time. On two processors, two threads each take 2 % less time than
    x264's own choice for a ladder up to 1080p, and one thread each takes 2 to 12 % more.
    """
    processors = len(os.sched_getaffinity(0))
    share = rung.width * rung.height / _PIXELS_FOR_ALL_THREADS
    return min(processors, math.ceil(processors * share) + 1)


def _keyframes(of_pass: Pass, part: Part) -> str:
    """Return the times of key frames after the part's first frame, or the rule for them."""
    if of_pass.starts_s is None:
        return _KEYFRAME_RULE
    end = part.end(of_pass.starts_s)
    following_s = of_pass.starts_s[part.first + 1 : None if end is None else end + 1]
    return ",".join(f"{at_s - filters.CUT_TOLERANCE_S:.4f}" for at_s in following_s) or "0"


def _audio_output(probe: Probe, plan: Plan, rung: AudioRung, source: int) -> tuple[str, ...]:
    # Players wait for sound that ends long before the picture, and no segment may be empty.
    padded_s = plan.duration_s if plan.picture_s else SHORTEST_END_S
    tracks = [track for track in probe.audio if track.index in (rung.index, *rung.joined)]
    hidden = [span for track in tracks for span in track.hidden]
    filtering = ",".join(
        (
            # The encoder fails at samples that are not numbers; integers always are.
            "aformat=sample_fmts=s32p",
            *(
                [_ended(hidden) if probe.lead_s is not None else _silenced(hidden)]
                if hidden
                else []
            ),
            *([_mix(rung)] if rung.gains else []),
            _IN_SYNC,
            *([_LIMITER] if rung.gains else []),
            f"apad=whole_dur={padded_s:.6f}",
        )
    )
    if rung.joined:
        graph = f"{_joined_streams(rung, source)},{filtering}[{rung.name}]"
        sound = ("-filter_complex", graph, "-map", f"[{rung.name}]")
    else:
        sound = ("-map", f"{source}:{rung.index}", "-af", filtering)
    return (
        *sound,
        *BARE,
        *("-c:a", "aac", "-b:a", str(rung.bitrate_bps)),
        *("-ac", str(rung.channels), "-ar", str(_SAMPLE_RATE_HZ)),
        *_hls(rung.name, segment_s=_sound_segment_s(probe.duration_s)),
    )


def _sound_segment_s(duration_s: float) -> float:
    """Return the length of segments of sound that leaves more than a few frames for the last."""
    count = max(1, round(duration_s / SEGMENT_S))
    if abs(duration_s - count * SEGMENT_S) > _UNCERTAIN_END_S:
        return SEGMENT_S
    # Each segment is made a little longer, so that the last one takes up the remaining frames.
    return SEGMENT_S + 2 * _UNCERTAIN_END_S / count


def _joined_streams(rung: AudioRung, source: int) -> str:
    """Return the graph that joins mono streams into one, in the order of the rung."""
    indexes = (rung.index, *rung.joined)
    # If names are equal, `amerge` keeps the order of the channels.
    as_mono = f"pan=mono|c0=c0,{_IN_SYNC},aformat=channel_layouts=mono"
    parts = [f"[{source}:{index}]{as_mono}[part{index}]" for index in indexes]
    inputs = "".join(f"[part{index}]" for index in indexes)
    return ";".join((*parts, f"{inputs}amerge=inputs={len(indexes)}"))


def _silenced(spans: Spans) -> str:
    """Return the filter that silences these spans, to a millisecond."""
    return f"asetnsamples=n={_SILENCED_SAMPLES}:p=0,volume=0:enable='{filters.during(spans)}'"


def _ended(spans: Spans) -> str:
    """Return the filter that ends sound where its edit ends, in a file of which all is read."""
    return f"atrim=end={spans[-1][0]:.6f}"


def _mix(rung: AudioRung) -> str:
    """Return the filter that mixes the channels of a track into those of the rendition."""
    sides = [
        "+".join(
            f"{min(gains[side], _NEARLY_WHOLE)}*{name}"
            for name, gains in rung.gains.items()
            if gains[side]
        )
        for side in range(rung.channels)
    ]
    outputs = [f"c{side}={terms or '0*c0'}" for side, terms in enumerate(sides)]
    layout = "mono" if rung.channels == 1 else "stereo"
    # Integers would be clipped where channels add up to more than full scale.
    return "|".join((f"aformat=sample_fmts=fltp,pan={layout}", *outputs))


def _subtitle_output(rung: TrackRung) -> tuple[str, ...]:
    subtitles = ("-map", f"0:{rung.index}", *BARE, "-c:s", "webvtt")
    # This output ends with the packet that reaches the limit; the other outputs continue.
    limit = ("-fs", str(MAX_SUBTITLE_BYTES))
    return (*subtitles, *limit, "-f", "webvtt", subtitle_file(rung))


def _hls(
    folder: str, *, segment_s: float, part: Part | None = None, ticks_per_s: int | None = None
) -> tuple[str, ...]:
    part = part or Part()
    # HLS players don't read a segment's index (`sidx`), whose times the muxer gets wrong where the
    # frame rate is uneven.
    options = f"movflags=+skip_sidx{_LATER_START if part.first else ''}"
    if ticks_per_s:
        options += f":video_track_timescale={ticks_per_s}"
    return (
        # By default the muxer delays the video by the reordering of its frames, but not the sound.
        # Without that, both have the delay in an edit list, and begin at zero together.
        *("-avoid_negative_ts", "disabled"),
        *("-f", "hls", "-hls_time", str(segment_s), "-hls_list_size", "0"),
        *("-hls_playlist_type", "vod", "-hls_segment_type", "fmp4"),
        *("-hls_segment_options", options, "-hls_flags", "independent_segments+temp_file"),
        *("-hls_fmp4_init_filename", INIT_NAME),
        *("-hls_segment_filename", f"{folder}/{part.prefix}{SEGMENT_PATTERN}"),
        *("-start_number", str(part.first)),
        f"{folder}/{PLAYLIST_NAME}",
    )
