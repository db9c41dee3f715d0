"""A joined file of a cut film has the kept intervals one after another, in sync."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from decoded_media import flashes_s, look, open_media, packets
from media_recipes import MakeMedia, as_yuv, beeps, card, lavfi
from published import FolderSink, Publish, Published, playlist

from portal.transcoding.encoding.cutting import encode_pieces
from portal.transcoding.encoding.joining import StoredTrack, join_tracks
from portal.transcoding.encoding.parts import Pass
from portal.transcoding.encoding.pictures import RenditionFiles
from portal.transcoding.encoding.sound_pieces import SoundPiece, cut_sound
from portal.transcoding.errors import FailCode, TranscodeFailed
from portal.transcoding.packaging import hls
from portal.transcoding.planning.kept import Kept
from portal.transcoding.planning.ladder import plan_renditions

SECONDS = 20
RATE = 10
# Segments last four seconds.
KEPT = Kept.of([(4, 8), (9.5, 12), (16, SECONDS + 0.1)])
FLASHES_S = (1.0, 5.0, 11.0, 14.0, 17.0, 18.5)
CUT_FLASHES_S = [1.0, 5.5, 7.5, 9.0]
LOUD = 0.1
PAUSE_S = 0.25


@dataclass(frozen=True)
class Cut:
    """Rendition of a cut film: its entries, and the files that the whole film doesn't have."""

    published: Published
    name: str
    segments: list[hls.Segment] = field(default_factory=list)
    own: dict[str, bytes] = field(default_factory=dict)

    def whole(self) -> RenditionFiles:
        return RenditionFiles(playlist=playlist(self.published.folder, self.name), read=self.read)

    def track(self) -> StoredTrack:
        files = self.whole()
        listed = replace(files.playlist, segments=tuple(self.segments))
        return StoredTrack(files=replace(files, playlist=listed))

    async def read(self, uri: str) -> bytes:
        if uri in self.own:
            return self.own[uri]
        return (self.published.folder / self.name / uri).read_bytes()


async def publish_film(make_media: MakeMedia, publish: Publish) -> Published:
    """Publish a film of five segments with flashes and beeps, whose top is copied."""
    picture = card(rate=str(RATE), duration_s=SECONDS, flashes_s=FLASHES_S)
    sound = beeps(duration_s=SECONDS, at_s=FLASHES_S, rate_hz=44_100)
    options = ("-vf", as_yuv(), "-c:v", "libx264", "-g", "20", "-sc_threshold", "0")
    options += ("-level:v", "4", "-c:a", "aac")
    return await publish(make_media("long film.mp4", *lavfi(picture, sound), *options))


def pass_over(published: Published, name: str, foreign_inits: Mapping[str, bytes]) -> Pass:
    """Return a pass that encodes one rendition of a published film again."""
    plan = plan_renditions(published.result.source, may_copy=False)
    return Pass(
        source_url=str(published.path),
        probe=published.result.source,
        plan=plan,
        rungs=[rung for rung in plan.video if rung.name == name],
        starts_s=playlist(published.folder, name).starts_s,
        foreign_inits=foreign_inits,
    )


async def cut_picture(published: Published, name: str, folder: Path, *, is_copied: bool) -> Cut:
    """Cut a picture; the part of a segment is encoded from the source."""
    cut = Cut(published, name)
    whole = playlist(published.folder, name)
    init = bytearray(await cut.read(hls.INIT_NAME))
    # The level, as if another version of the encoder had chosen it.
    init[init.index(b"avcC") + 7] += not is_copied
    inits = {name: bytes(init)}
    of_pass = pass_over(published, name, inits if is_copied else {})
    sink = FolderSink(folder / "pieces")
    span = KEPT.intervals[1]
    stored = []
    pieces = await encode_pieces(
        of_pass,
        [span],
        inits={} if is_copied else inits,
        sink=sink,
        work_dir=folder,
        on_stored=lambda *piece: stored.append(piece),
    )
    [encoded] = pieces[name].segments.values()
    assert (name, encoded) in stored
    for uri, file in ((hls.INIT_NAME, hls.INIT_NAME), ("own.m4s", encoded.uri)):
        cut.own[uri] = (sink.folder / name / file).read_bytes()
    assert cut.own[hls.INIT_NAME] == pieces[name].init
    piece = hls.Segment(uri="own.m4s", duration_s=2.5, is_discontinuous=True)
    last = replace(whole.segments[4], is_discontinuous=True)
    cut.segments.extend((whole.segments[1], piece, last))
    return cut


async def cut_audio(published: Published, folder: Path) -> Cut:
    cut = Cut(published, "audio")
    whole = cut.whole()
    intervals = await cut_sound(whole, KEPT, bitrate_bps=80_000, folder=folder, timeout_s=60)
    for number, entries in enumerate(intervals):
        for place, entry in enumerate(entries):
            if isinstance(entry, SoundPiece):
                uri = f"own-{number}-{place}.m4s"
                cut.own[uri] = entry.data
                segment = hls.Segment(uri=uri, duration_s=entry.duration_s)
            else:
                segment = whole.playlist.segments[entry]
            is_discontinuous = bool(number) and not place
            cut.segments.append(replace(segment, is_discontinuous=is_discontinuous))
    return cut


def beeps_s(path: Path) -> list[float]:
    """Return when beeps begin, by the times of frames, which overlap at joins."""
    onsets_s: list[float] = []
    loud_at_s = -1.0
    with open_media(path) as container:
        for frame in container.decode(audio=0):
            loud = np.flatnonzero(np.abs(frame.to_ndarray()[0]) > LOUD)
            if len(loud):
                at_s = frame.time + loud[0] / frame.sample_rate
                if at_s - loud_at_s > PAUSE_S:
                    onsets_s.append(at_s)
                loud_at_s = frame.time + loud[-1] / frame.sample_rate
    return onsets_s


async def test_joined_cut_film_is_continuous_and_in_sync(
    make_media: MakeMedia, publish: Publish, work_dir: Path, tmp_path: Path
) -> None:
    published = await publish_film(make_media, publish)
    sound = await cut_audio(published, tmp_path)
    assert [video.copied for video in published.result.renditions] == [False, True]
    for video in published.result.renditions:
        folder = work_dir / video.name
        folder.mkdir()
        cut = await cut_picture(published, video.name, folder, is_copied=video.copied)
        path = await join_tracks(
            cut.track(), [sound.track()], title="Cut", folder=folder, timeout_s=60
        )
        pictures = look(path)
        count = round((KEPT.duration_s - 0.1) * RATE)
        assert [picture.time_s for picture in pictures] == pytest.approx(
            [number / RATE for number in range(count)], abs=0.001
        )
        assert flashes_s(pictures) == pytest.approx(CUT_FLASHES_S, abs=0.001)
        assert beeps_s(path) == pytest.approx(CUT_FLASHES_S, abs=0.005)
        decoded_s = [packet.decoded_s for packet in packets(path, "audio")]
        assert decoded_s == sorted(decoded_s)


async def test_a_copy_with_other_lengths_of_nal_units_fails_the_pass(
    make_media: MakeMedia, publish: Publish, work_dir: Path
) -> None:
    published = await publish_film(make_media, publish)
    name = published.result.renditions[-1].name
    init = bytearray((published.folder / name / hls.INIT_NAME).read_bytes())
    init[init.index(b"avcC") + 8] ^= 1
    of_pass = pass_over(published, name, {name: bytes(init)})
    sink = FolderSink(work_dir / "pieces")
    with pytest.raises(TranscodeFailed) as raised:
        await encode_pieces(of_pass, KEPT.intervals[1:2], inits={}, sink=sink, work_dir=work_dir)
    assert raised.value.code is FailCode.OUTPUT_INCOMPLETE


async def test_joined_sound_of_a_cut_film_has_gaps_of_a_frame_at_most(
    make_media: MakeMedia, publish: Publish, work_dir: Path, tmp_path: Path
) -> None:
    published = await publish_film(make_media, publish)
    sound = await cut_audio(published, tmp_path)
    path = await join_tracks(None, [sound.track()], title="Sound", folder=work_dir, timeout_s=60)
    frames = packets(path, "audio")
    # Decoders discard what is before zero.
    assert -1024 / 44_100 <= float(frames[0].shown_s) <= 0
    lengths_s = [float(after.shown_s - before.shown_s) for before, after in pairwise(frames)]
    assert min(lengths_s) > 0
    assert max(lengths_s) < 2 * 1024 / 44_100
    assert beeps_s(path) == pytest.approx(CUT_FLASHES_S, abs=0.025)
