"""Renditions of cut versions, made of the segments of the whole film and of pieces at cuts.

A cut version has its own playlists, in the folders of its attempts. They name segments of the whole
film, which is the version's base, by relative addresses. So a cut costs as much as its pieces,
however long the film is.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from portal.concurrency import task_group
from portal.database.models import Rendition, RenditionState, Version
from portal.films import renditions
from portal.films.attempts import OpenAttempt
from portal.films.copied_films import copy_foreign_base
from portal.films.outputs import StorageSink, open_rendition
from portal.films.progress import Reports, Stage
from portal.films.sources import Source, probed_source
from portal.queue.tools import Tools
from portal.storage.bucket import Storage, objects_below
from portal.storage.objects import output_prefix
from portal.transcoding import errors
from portal.transcoding.encoding import ffmpeg
from portal.transcoding.encoding.assembly import PassOutput, store_playlists
from portal.transcoding.encoding.command import SEGMENT_SUFFIX
from portal.transcoding.encoding.cutting import (
    CutSegment,
    PicturePieces,
    at_frames,
    cut_segments,
    encode_pieces,
)
from portal.transcoding.encoding.output_validation import refusing_unreadable
from portal.transcoding.encoding.parts import Pass, Segment
from portal.transcoding.encoding.pictures import POSTER_NAME, RenditionFiles, extract_frame
from portal.transcoding.encoding.sink import pass_folder, put_file
from portal.transcoding.encoding.sound_pieces import SoundPiece, cut_sound
from portal.transcoding.packaging import hls
from portal.transcoding.packaging.cmaf import avc_codec, between_keys, inspect_segment
from portal.transcoding.packaging.master import FinishedRendition, Kind
from portal.transcoding.planning.kept import ROUNDING_S, Interval, Kept
from portal.transcoding.planning.ladder import early_rendition, plan_renditions

# Expected time to encode all pieces below which they are made together.
_TOGETHER_S = 4.0
# Time to start ffmpeg, and to decode the frames before a piece.
_PIECE_START_S = 0.7
# Shares of the cut film at which frames are candidates for its poster.
_CANDIDATES_AT = (0.1, 0.3, 0.45, 0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Segment of a cut rendition with its size, and that of its key frame, 0 for sound."""

    segment: hls.Segment
    size_bytes: int
    key_size_bytes: int = 0

    def following_a_cut(self) -> "Entry":
        """Return the same segment as the first one of an interval."""
        return replace(self, segment=replace(self.segment, is_discontinuous=True))


@dataclass(frozen=True, slots=True)
class WholeRendition:
    """Rendition of the whole film: its row and files, and its segments as cut renditions name them.

    `map_uri` is the relative address of their init segment.
    """

    row: Rendition
    files: RenditionFiles
    entries: Sequence[Entry]
    map_uri: str


@dataclass(frozen=True, slots=True)
class Film:
    """Whole film of which a version is a cut: its complete renditions, the lowest picture first."""

    pictures: Sequence[WholeRendition]
    sounds: Sequence[WholeRendition]

    def cut(self, keep: Kept) -> list[list[CutSegment]]:
        """Return the segments of the cut picture by intervals, which are the same in each."""
        playlist = self.pictures[0].files.playlist
        return cut_segments(playlist.starts_s, playlist.duration_s, keep)


async def open_film(version: Version, storage: Storage) -> Film:
    """Return the whole film of which a version keeps intervals; reads its playlists, no media.

    Raises `ObjectMissing` for a missing file, or `PlaylistError` for an invalid playlist.
    """
    rows = await Rendition.filter(
        version_id=version.base_id, state=RenditionState.COMPLETE
    ).order_by("position")
    opened = {
        kind: [await _open(row, version, storage) for row in rows if row.kind is kind]
        for kind in (Kind.VIDEO, Kind.AUDIO)
    }
    return Film(opened[Kind.VIDEO], opened[Kind.AUDIO])


async def _open(row: Rendition, version: Version, storage: Storage) -> WholeRendition:
    files = await open_rendition(row, version.video_id, storage)
    playlist = files.playlist
    folder = f"{output_prefix(version.video_id, row.attempt_number or 0)}{row.name}/"
    sizes_bytes = {
        stored.key.removeprefix(folder): stored.size_bytes
        async for stored in objects_below(folder, storage)
    }
    key_sizes_bytes = [0] * len(playlist.segments)
    if row.iframe_bandwidth_bps:
        text = (await files.read(hls.IFRAME_PLAYLIST_NAME)).decode()
        ranges = [segment.byte_range or "" for segment in hls.parse_media_playlist(text).segments]
        key_sizes_bytes = [int(each.partition("@")[0]) for each in ranges]
    address = f"../../{row.attempt_number}/{row.name}/"
    entries = [
        Entry(
            segment=replace(segment, uri=address + segment.uri),
            size_bytes=sizes_bytes.get(segment.uri, 0),
            key_size_bytes=key_size_bytes,
        )
        for segment, key_size_bytes in zip(playlist.segments, key_sizes_bytes, strict=True)
    ]
    map_uri = address + (playlist.map_uri or hls.INIT_NAME)
    return WholeRendition(row, files, entries, map_uri)


async def make_first(
    attempt: OpenAttempt, tools: Tools, reports: Reports, *, may_encode: bool
) -> tuple[Source, PassOutput]:
    """Make the first renditions, as `Maker` describes: all, if that is quick, or one and all sound.

    The film of another video is copied first. A cut has little to encode, so any job may do it.
    """
    attempt = await copy_foreign_base(attempt, tools.storage)
    async with probed_source(attempt.version, tools, interruptions=attempt.interruptions) as source:
        return source, await _make_first(attempt, tools, reports, source)


async def make_missing(attempt: OpenAttempt, tools: Tools, reports: Reports) -> PassOutput:
    """Make the other renditions of a ready cut version, which the attempt names."""
    async with probed_source(attempt.version, tools, interruptions=attempt.interruptions) as source:
        film = await open_film(attempt.version, tools.storage)
        keep = Kept.of(attempt.version.keep or ())
        maker = _CutMaker(attempt, tools, reports, source)
        return _output(await maker.make_pictures(film, film.cut(keep), attempt.targets), keep)


async def _make_first(
    attempt: OpenAttempt, tools: Tools, reports: Reports, source: Source
) -> PassOutput:
    """Make all renditions, or one and all sound. Raises as `encode_pieces` and `cut_sound`."""
    film = await open_film(attempt.version, tools.storage)
    keep = await at_frames(Kept.of(attempt.version.keep or ()), film.pictures[0].files)
    intervals = film.cut(keep)
    sizes = {each.row.name: (each.row.width or 0, each.row.height or 0) for each in film.pictures}
    targets = list(sizes)
    if _expected_s(source, targets, _new_segments(intervals)) > _TOGETHER_S:
        targets = [early_rendition(sizes) or targets[0]]
    await renditions.plan_cut(attempt, keep, targets=targets)
    reports.progress.reach(Stage.TRANSCODING)
    maker = _CutMaker(attempt, tools, reports, source)
    async with task_group() as tasks:
        poster = tasks.create_task(maker.make_poster(film.pictures[-1], intervals))
        sounds = tasks.create_task(maker.make_sounds(film, keep))
        pictures = await maker.make_pictures(film, intervals, targets)
    output = _output([*pictures, *sounds.result()], keep)
    reports.progress.finish()
    return replace(output, has_poster=poster.result())


def _output(finished: Sequence[FinishedRendition], keep: Kept) -> PassOutput:
    return PassOutput(
        renditions=tuple(finished), duration_s=keep.duration_s, has_faults=False, notes=()
    )


def _new_segments(intervals: Sequence[Sequence[CutSegment]]) -> list[CutSegment]:
    """Return the segments that the whole film doesn't have."""
    return [segment for interval in intervals for segment in interval if not segment.is_whole]


def _expected_s(
    source: Source, names: Collection[str], new_segments: Sequence[CutSegment]
) -> float:
    """Return the expected time to encode these segments of renditions."""
    plan = plan_renditions(source.probe, may_copy=False)
    length_s = sum(segment.span.end_s - segment.span.start_s for segment in new_segments)
    encode_s = plan.encode_s(names) * length_s / source.probe.duration_s
    return encode_s + _PIECE_START_S * len(new_segments)


@dataclass(frozen=True, slots=True)
class _CutMaker:
    """Maker of the renditions of a cut version, for one attempt."""

    attempt: OpenAttempt
    tools: Tools
    reports: Reports
    source: Source

    @property
    def sink(self) -> StorageSink:
        """Return the sink of the attempt's folder."""
        return StorageSink(
            self.tools.storage, self.attempt.video_id, self.attempt.number, self.attempt
        )

    async def make_pictures(
        self, film: Film, intervals: Sequence[Sequence[CutSegment]], targets: Collection[str]
    ) -> list[FinishedRendition]:
        """Make the pieces of these renditions, and store their playlists."""
        chosen = [whole for whole in film.pictures if whole.row.name in targets]
        new_segments = _new_segments(intervals)
        encoded = await self._encode_pieces(
            film, [whole for whole in chosen if not whole.row.copied], new_segments
        )
        finished = []
        for whole in chosen:
            if whole.row.copied:
                pieces = await self._split_or_encode(film, whole, new_segments)
            else:
                pieces = encoded[whole.row.name]
            entries = [
                [
                    whole.entries[segment.number] if segment.is_whole else _entry(segment, pieces)
                    for segment in interval
                ]
                for interval in intervals
            ]
            finished.append(await self._store_playlists(whole, entries, init=pieces.init))
        return finished

    async def _encode_pieces(
        self, film: Film, chosen: Sequence[WholeRendition], new_segments: Sequence[CutSegment]
    ) -> dict[str, PicturePieces]:
        """Encode pieces of renditions, with one decode of each; return them by name."""
        if not chosen or not new_segments:
            return {whole.row.name: PicturePieces({}) for whole in chosen}
        plan = plan_renditions(self.source.probe, may_copy=False)
        inits = {whole.row.name: await whole.files.read_init() for whole in chosen}
        copied = {whole.row.name for whole in chosen if whole.row.copied}
        of_pass = Pass(
            source_url=self.source.url,
            probe=self.source.probe,
            plan=plan,
            rungs=[rung for rung in plan.video if rung.name in inits],
            starts_s=film.pictures[0].files.playlist.starts_s,
            foreign_inits={name: inits[name] for name in copied},
        )
        numbers = count(1)

        def report_stored(rendition: str, piece: Segment) -> None:
            share = next(numbers) / (len(new_segments) * len(chosen))
            self.reports.progress.reach(Stage.TRANSCODING, share)

        return await encode_pieces(
            of_pass,
            [segment.span for segment in new_segments],
            inits={name: inits[name] for name in inits.keys() - copied},
            sink=self.sink,
            work_dir=self.tools.work_dir,
            on_stored=report_stored,
        )

    async def _split_or_encode(
        self, film: Film, whole: WholeRendition, new_segments: Sequence[CutSegment]
    ) -> PicturePieces:
        """Store the pieces of a copied rendition, and return them.

        Those that don't begin and end at key frames are encoded. Raises TranscodeFailed if a
        segment can't be read, or as `encode_pieces`.
        """
        playlist = whole.files.playlist
        init = await whole.files.read_init()
        split = {}
        unsplit = []
        for segment in new_segments:
            begins_s = playlist.starts_s[segment.number]
            stored = await whole.files.read(playlist.segments[segment.number].uri)
            with refusing_unreadable():
                data = between_keys(
                    init,
                    stored,
                    number=segment.number,
                    from_s=segment.span.start_s - begins_s,
                    until_s=segment.span.end_s - begins_s,
                )
            if data is None:
                unsplit.append(segment)
                continue
            uri = f"{segment.number:05}-{round(segment.span.start_s * 1000)}{SEGMENT_SUFFIX}"
            await put_file(self.sink, f"{whole.row.name}/{uri}", data)
            split[segment.span] = Segment(
                number=segment.number,
                uri=uri,
                size_bytes=len(data),
                duration_s=segment.span.end_s - segment.span.start_s,
                facts=inspect_segment(data),
            )
        encoded = (await self._encode_pieces(film, [whole], unsplit))[whole.row.name]
        return replace(encoded, segments={**split, **encoded.segments})

    async def make_sounds(self, film: Film, keep: Kept) -> list[FinishedRendition]:
        """Make the pieces of all sound, and store the playlists."""
        picture_s = film.pictures[0].files.playlist.duration_s
        return [
            await self._make_sound(whole, _extend_to_sound_end(keep, picture_s, whole))
            for whole in film.sounds
        ]

    async def _make_sound(self, whole: WholeRendition, keep: Kept) -> FinishedRendition:
        with pass_folder(self.tools.work_dir) as folder:
            intervals = await cut_sound(
                whole.files,
                keep,
                bitrate_bps=whole.row.average_bandwidth_bps or 0,
                folder=folder,
                timeout_s=ffmpeg.run_limit_s(whole.files.playlist.duration_s),
            )
        numbers = count()
        entries = [
            [
                await self._store_sound_piece(whole, segment, number=next(numbers))
                if isinstance(segment, SoundPiece)
                else whole.entries[segment]
                for segment in interval
            ]
            for interval in intervals
        ]
        return await self._store_playlists(whole, entries)

    async def _store_sound_piece(
        self, whole: WholeRendition, piece: SoundPiece, *, number: int
    ) -> Entry:
        uri = f"{number:05}{SEGMENT_SUFFIX}"
        await put_file(self.sink, f"{whole.row.name}/{uri}", piece.data)
        segment = hls.Segment(uri=uri, duration_s=piece.duration_s)
        return Entry(segment=segment, size_bytes=len(piece.data))

    async def _store_playlists(
        self,
        whole: WholeRendition,
        intervals: Iterable[Sequence[Entry]],
        *,
        init: bytes | None = None,
    ) -> FinishedRendition:
        """Store the playlists of a rendition, and return it with its measures.

        `init` is its own init segment; None if it has that of the whole film.
        """
        entries: list[Entry] = []
        for first, *following in intervals:
            entries += [first.following_a_cut() if entries else first, *following]
        sizes_bytes = [entry.size_bytes for entry in entries]
        key_sizes_bytes = None
        if whole.row.iframe_bandwidth_bps:
            key_sizes_bytes = [entry.key_size_bytes for entry in entries]
        stored = await store_playlists(
            whole.row.name,
            [entry.segment for entry in entries],
            sizes_bytes=sizes_bytes,
            key_sizes_bytes=key_sizes_bytes,
            target_s=whole.files.playlist.target_duration_s,
            map_uri=hls.INIT_NAME if init else whole.map_uri,
            sink=self.sink,
        )
        finished = renditions.finished_rendition(whole.row)
        return replace(
            finished,
            codecs=avc_codec(init) if init else finished.codecs,
            bandwidth_bps=stored.peak_bps,
            average_bandwidth_bps=stored.average_bps,
            iframe_bandwidth_bps=stored.iframe_bps,
            size_bytes=len(init or b"") + sum(sizes_bytes) + stored.size_bytes,
            segment_count=len(entries),
        )

    async def make_poster(
        self, whole: WholeRendition, intervals: Sequence[Sequence[CutSegment]]
    ) -> bool:
        """Store the best of some frames of the cut film; return whether there is one.

        Candidates are the first frames of segments.
        """
        playlist = whole.files.playlist
        segments = [segment for interval in intervals for segment in interval]
        init = await whole.files.read_init()
        frames = []
        with pass_folder(self.tools.work_dir) as folder:
            for segment in {segments[int(share * len(segments))] for share in _CANDIDATES_AT}:
                data = await whole.files.read(playlist.segments[segment.number].uri)
                # Add the rounding, so that the frame before the segment is not chosen.
                at_s = segment.span.start_s - playlist.starts_s[segment.number] + ROUNDING_S
                with suppress(errors.TranscodeFailed):
                    frames.append(await extract_frame(init, data, at_s=at_s, work_dir=folder))
        if frames:
            await put_file(self.sink, POSTER_NAME, max(frames, key=len))
        return bool(frames)


def _extend_to_sound_end(keep: Kept, picture_s: float, sound: WholeRendition) -> Kept:
    """Extend the last interval to the end of the sound if it reaches the end of the picture."""
    *earlier, last = keep.intervals
    if last.end_s < picture_s:
        return keep
    end_s = max(last.end_s, sound.files.playlist.duration_s)
    return Kept((*earlier, Interval(last.start_s, end_s)))


def _entry(segment: CutSegment, pieces: PicturePieces) -> Entry:
    """Return the entry of a segment that the whole film doesn't have."""
    piece = pieces.segments[segment.span]
    return Entry(
        segment=hls.Segment(uri=piece.uri, duration_s=segment.span.end_s - segment.span.start_s),
        size_bytes=piece.size_bytes,
        key_size_bytes=piece.facts.key_size_bytes,
    )
