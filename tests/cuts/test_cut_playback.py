"""Playing a cut video: viewers get what is kept, and editors the whole film, too."""

from uuid import uuid4

import pytest
from api_client import answered, run_sql
from page_rows import make_cut, make_live, make_upload_row
from playable_videos import FILES, MEDIA, Cast
from signed_in import Sender, text_of

from portal.accounts.permissions import EVERYONES
from portal.database.models import Caption, Rendition, RenditionState, Version, Video, VideoStatus
from portal.films.captions import folder_name
from portal.http.composition import WebContext
from portal.transcoding.packaging.hls import playlist_uris
from portal.transcoding.packaging.master import Kind
from portal.videos import playback_links

NETWORK = "https://cdn.example/v"
pytestmark = pytest.mark.shared_app(playback_base_url=NETWORK)

KEPT_SEGMENT = "low/00000.m4s"
REMOVED_SEGMENT = "low/00001.m4s"
PLAYLIST = """#EXTM3U
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="../../1/low/init.mp4"
#EXTINF:4.0,
../../1/low/00000.m4s
#EXT-X-DISCONTINUITY
#EXTINF:2.0,
00000.m4s
#EXT-X-ENDLIST
"""
FILM = (*FILES, REMOVED_SEGMENT)
# Files of the whole film that the playlist of the cut names.
NAMED = {"low/init.mp4", KEPT_SEGMENT}


async def make_live_cut(context: WebContext, video: Video) -> Version:
    """Make a cut of a video with its files in storage live, as the attempt 2."""
    cut = await make_cut(video, has_poster=True)
    files = {**FILES, "low/playlist.m3u8": PLAYLIST.encode()}
    for path in [*(f"2/{name}" for name in files), f"1/{REMOVED_SEGMENT}"]:
        body = files.get(path.partition("/")[2], b"removed")
        await context.storage.put(f"hls/{video.id}/{path}", body, content_type="text/plain")
    await make_live(cut)
    await Rendition.create(
        version_id=cut.id,
        kind=Kind.VIDEO,
        name="low",
        position=0,
        state=RenditionState.COMPLETE,
        attempt_number=2,
    )
    return cut


async def served(sender: Sender, video: Video, attempt: int, path: str = "/hls/{}/{}/") -> set[str]:
    """Return the names of the files of an attempt that are served below a path."""
    names = set()
    for name in FILM:
        answer = await sender.get(path.format(video.id, attempt) + name)
        assert answer.status_code in (200, 302, 403, 404), name
        is_elsewhere = answer.headers.get("Location") == "../master.m3u8"
        if answer.status_code < 400 and not is_elsewhere:
            names.add(name)
    return names


@pytest.mark.parametrize("audience", ["public", "for members"])
async def test_viewers_get_what_is_kept_and_editors_the_whole_film(
    resources: WebContext, cast: Cast, audience: str
) -> None:
    video = await cast.make_ready(audience)
    viewer = cast.senders["viewer"][0]
    assert await served(viewer, video, 1) == set(FILM)
    await make_live_cut(resources, video)
    for name, files in (("viewer", set()), ("another editor", set()), ("its editor", set(FILM))):
        sender = cast.senders[name][0]
        assert await served(sender, video, 1) == NAMED, name
        assert await served(sender, video, 1, "/videos/{}/film/{}/") == files, name
    assert await served(viewer, video, 2) >= set(FILES)
    # A playback token doesn't give more than its video.
    record = await answered(await cast.senders["its editor"][0].get(f"/api/videos/{video.id}"))
    base = record["playbackUrl"].partition("/hls/")[0].partition("://")[2].partition("/")[2]
    for path, status in ((KEPT_SEGMENT, 302), (REMOVED_SEGMENT, 404), ("poster.jpg", 404)):
        if base:
            answer = await viewer.get(f"/{base}/hls/{video.id}/1/{path}")
            assert answer.status_code == status, path
            answer = await viewer.get(f"/{base}/videos/{video.id}/film/1/{path}")
            assert answer.status_code == 404, path


async def test_address_of_a_stream_gives_the_current_version(
    resources: WebContext, cast: Cast
) -> None:
    video = await cast.make_ready("for members")
    viewer = cast.senders["viewer"][0]
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    base = f"/p/{await link.token(resources.signing_keys)}/hls/{video.id}"

    async def named_by(path: str) -> list[str]:
        return playlist_uris(await text_of(await viewer.get(f"{base}/{path}")))

    assert await named_by("master.m3u8") == ["1/low/playlist.m3u8"]
    await make_live_cut(resources, video)
    assert await named_by("master.m3u8") == ["2/low/playlist.m3u8"]
    assert await named_by("master.m3u8?start=1&end=2") == ["2/low/playlist.m3u8?start=1&end=2"]
    assert await named_by("2/master.m3u8") == ["../2/low/playlist.m3u8"]
    # Addresses of former versions of the portal contain the number of an attempt.
    former = await viewer.get(f"{base}/1/master.m3u8?start=1&end=2")
    assert former.headers["Location"] == "../master.m3u8?start=1&end=2"


async def test_addresses_of_a_cut_video_are_signed(resources: WebContext, cast: Cast) -> None:
    video = await cast.make_ready("public")
    await make_live_cut(resources, video)
    viewer = cast.senders["viewer"][0]
    record = await answered(await viewer.get(f"/api/videos/{video.id}"))
    config = resources.config
    assert record["playbackUrl"] == f"{config.public_url}/hls/{video.id}/master.m3u8"
    master = await text_of(await viewer.get(f"/hls/{video.id}/master.m3u8"))
    assert playlist_uris(master) == ["2/low/playlist.m3u8"]
    playlist = await text_of(await viewer.get(f"/hls/{video.id}/2/low/playlist.m3u8"))
    storage = f"{config.s3_endpoint_url}/{config.s3_bucket}/hls/{video.id}"
    uris = [uri.partition("?")[0] for uri in playlist_uris(playlist)]
    assert uris == [
        f"{storage}/{name}" for name in ("1/low/00000.m4s", "2/low/00000.m4s", "1/low/init.mp4")
    ]
    assert NETWORK not in playlist
    pictures = await text_of(await viewer.get(f"/videos/{video.id}/storyboard.vtt"))
    assert f"{storage}/2/storyboard-000.jpg?" in pictures
    poster = await viewer.get(f"/videos/{video.id}/poster.jpg")
    assert poster.headers["Location"].startswith(f"{storage}/2/poster.jpg?")
    folder = f"captions/{folder_name(await Caption.get(video_id=video.id))}"
    key = f"hls/{video.id}/{folder}/playlist.m3u8"
    await resources.storage.put(key, MEDIA.encode(), content_type="text/plain")
    assert f"{storage}/{folder}/00000.m4s?" in await text_of(await viewer.get(f"/{key}"))
    # Viewers of the whole film get addresses of the network again.
    await viewer.get("/")
    response = await cast.senders["its editor"][0].ask(
        "PUT", f"/api/videos/{video.id}/cuts", json={"keep": None}
    )
    await answered(response)
    master = await text_of(await viewer.get(f"/hls/{video.id}/master.m3u8"))
    assert playlist_uris(master) == [f"{NETWORK}/hls/{video.id}/1/low/playlist.m3u8"]


async def test_film_has_addresses_for_editors(resources: WebContext, cast: Cast) -> None:
    video = await cast.make_ready("public")
    await make_live_cut(resources, video)
    editor = cast.senders["its editor"][0]
    cuts = await answered(await editor.get(f"/api/videos/{video.id}/cuts"))
    folder = f"/videos/{video.id}/film/1"
    assert cuts["filmUrl"].endswith(f"{folder}/master.m3u8")
    playlist = await text_of(await editor.get(f"{folder}/low/playlist.m3u8"))
    assert "\n00000.m4s\n" in playlist
    index = f"/videos/{video.id}/film/storyboard.vtt"
    pictures = await text_of(await editor.get(index))
    assert f"\n{folder}/storyboard-000.jpg#xywh=" in pictures
    assert (await cast.senders["viewer"][0].get(index)).status_code == 403
    waveform = f"/videos/{video.id}/film/waveform.bin"
    assert (await editor.get(waveform)).status_code == 204
    await resources.storage.put(f"hls/{video.id}/1/waveform.bin", b"peaks", content_type="")
    assert await (await editor.get(waveform)).get_data() == b"peaks"
    assert (await cast.senders["viewer"][0].get(waveform)).status_code == 403


async def test_viewers_finish_a_cut_unless_something_else_was_removed(
    resources: WebContext, cast: Cast
) -> None:
    video = await cast.make_ready("public")
    first = await make_live_cut(resources, video)
    viewer = cast.senders["viewer"][0]
    film = await Version.get(id=video.version_id)
    await make_live(film)
    assert "low/playlist.m3u8" in await served(viewer, video, 2)
    assert await served(viewer, video, 1) == set(FILM)
    await make_live(first)
    # Viewers of the first cut can finish it when another file replaces the film, but not the film.
    other = Version(
        id=uuid4(),
        video_id=video.id,
        file_name="b.mp4",
        size_bytes=1,
        source_etag="e",
        status=VideoStatus.READY,
        created_at=film.created_at,
        storage_key=(await make_upload_row()).key,
        transcode_job_id=8,
        published_attempt=3,
    )
    await other.save(force_create=True)
    await make_live(other)
    assert "low/playlist.m3u8" in await served(viewer, video, 2)
    assert await served(viewer, video, 1) == NAMED
    later = "UPDATE versions SET retired_at = retired_at - interval '2 days'"
    await run_sql(resources.config.database_url, later)
    for attempt in (1, 2):
        assert await served(viewer, video, attempt) == set()
