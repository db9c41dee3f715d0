"""Files to save: permissions on pages and in the API, and the names of files."""

from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from api_client import RAW_FILE, Client, answered, metadata, presign, problem, put
from page_rows import change_video, cut_video
from page_texts import page
from playable_videos import EDITORS, Cast, make_ready, token_in
from quart import Quart
from signed_in import Sender, configure, text_of

from portal.accounts.permissions import EVERYONES
from portal.database.models import Caption
from portal.database.work_models import Download, DownloadState
from portal.features.downloads import service as downloads
from portal.http.composition import WebContext
from portal.videos import playback_links

pytestmark = pytest.mark.shared_app()

# Names of the files of `make_ready`.
MADE = ["low.mp4", "en.vtt", "en.srt"]
OFFERED = {"off": [], "original": ["original"], "all": ["original", *MADE]}


async def names(sender: Sender, path: str) -> list[str]:
    """Return the names of the files that the API lists; none if it refuses to."""
    response = await sender.get(path)
    if response.status_code == 403:
        await problem(response, 403, "download_not_allowed")
        return []
    return [record["name"] for record in (await answered(response))["downloads"]]


@pytest.mark.parametrize("setting", OFFERED)
async def test_setting_decides_which_files_viewers_may_save(
    app: Quart, cast: Cast, setting: str
) -> None:
    configure(app, downloads=setting)
    video = await cast.make_ready("for members")
    offered = {"viewer": OFFERED[setting], "another editor": OFFERED[setting]}
    offered |= dict.fromkeys(EDITORS, OFFERED["all"])
    for name, expected in offered.items():
        sender = cast.senders[name][0]
        assert await names(sender, f"/api/videos/{video.id}/downloads") == expected, name
        statuses = {
            file: (await sender.get(f"/videos/{video.id}/downloads/{file}")).status_code
            for file in ("original", "en.vtt")
        }
        # No file was uploaded.
        allowed = {"original": 404, "en.vtt": 200}
        assert statuses == {
            file: status if file in expected else 403 for file, status in allowed.items()
        }, name
        request = await sender.post(f"/api/videos/{video.id}/downloads/low.mp4")
        assert request.status_code == (202 if "low.mp4" in expected else 403), name
        document = await page(sender, f"/videos/{video.id}")
        assert ('id="download"' in document) is bool(expected), name
    assert await names(cast.senders["admin"][0], f"/api/videos/{video.id}/downloads") != []
    nobody = await cast.senders["nobody"][0].get(f"/api/videos/{video.id}/downloads")
    await problem(nobody, 404, "video_not_found")


async def test_playback_token_grants_what_viewers_may_save(
    app: Quart, resources: WebContext, cast: Cast
) -> None:
    """A link's token, and the token in the addresses that the API lists."""
    configure(app, downloads="all")
    video = await cast.make_ready()
    sender = cast.senders["its editor"][0]
    listed = await answered(await sender.get(f"/api/videos/{video.id}/downloads"))
    urls = {record["name"]: record["url"] for record in listed["downloads"]}
    assert urls["low.mp4"] is None
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES)
    tokens = [token_in(urls["en.srt"]), await link.token(resources.signing_keys)]
    paths = [f"/p/{token}/videos/{video.id}/downloads/en.srt" for token in tokens]
    player = Sender(app)
    assert [(await player.get(path)).status_code for path in paths] == [200, 200]
    configure(app, downloads="original")
    assert [(await player.get(path)).status_code for path in paths] == [403, 403]


async def test_viewers_of_a_cut_video_get_no_original(app: Quart, cast: Cast) -> None:
    configure(app, downloads="all")
    video = await cast.make_ready("for members")
    await cut_video(video, [[0.0, 5.0]])
    path = f"/api/videos/{video.id}/downloads"
    assert "original" not in await names(cast.senders["viewer"][0], path)
    refused = await cast.senders["viewer"][0].get(f"/videos/{video.id}/downloads/original")
    assert refused.status_code == 403
    editor = cast.senders["its editor"][0]
    listed = (await answered(await editor.get(path)))["downloads"]
    # The address of the original has no token, which would grant it to viewers.
    assert listed[0]["url"].endswith(f"/videos/{video.id}/downloads/original")
    assert "/p/" not in listed[0]["url"]
    page = await editor.get(f"/videos/{video.id}/downloads")
    assert "also has what was cut" in await text_of(page)


async def test_captions_are_saved_as_they_are_now(client: Client, resources: WebContext) -> None:
    video = await make_ready(resources, None, "public", title="Größe: A/B?")
    text = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n<i>A</i> &amp; B\n"
    await Caption.filter(video_id=video.id).update(text=text)
    response = await client.get(f"/videos/{video.id}/downloads/en.srt")
    assert await response.get_data(as_text=True) == "1\n00:00:01,000 --> 00:00:02,000\nA & B\n"
    assert response.mimetype == "application/x-subrip"
    name = "filename*=UTF-8''Gr%C3%B6%C3%9Fe_%20A_B_%20en.srt"
    assert name in response.headers["Content-Disposition"]
    response = await client.get(f"/videos/{video.id}/downloads/en.vtt")
    assert await response.get_data(as_text=True) == text
    response = await client.get(f"/videos/{video.id}/downloads/de.vtt")
    assert response.status_code == 404


async def test_list_shows_the_state_of_each_file(client: Client, resources: WebContext) -> None:
    """Without scripts, a form requests a file, and shows the list again."""
    video = await make_ready(resources, None, "public")
    path = f"/videos/{video.id}/downloads"
    assert ">Prepare<" in await page(client, path)
    response = await client.post(f"{path}/low.mp4")
    assert (response.status_code, response.headers["Location"]) == (303, path)
    preparing = await page(client, path)
    assert "Preparing…" in preparing
    assert 'hx-trigger="every 2s"' in preparing

    await Download.all().update(state=DownloadState.FAILED, error_code="disk_full")
    failed = await page(client, path)
    assert "too little disk space" in failed
    assert ">Try again<" in failed
    assert "hx-trigger" not in failed
    record = (await answered(await client.get(f"/api{path}")))["downloads"][1]
    assert (record["state"], record["errorCode"]) == ("failed", "disk_full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(downloads, "MAX_WAITING", 0)
        await problem(await client.post(f"/api{path}/low.mp4"), 503, "downloads_busy")
    await client.post(f"{path}/low.mp4")
    await Download.exclude(video_id=None).update(state=DownloadState.READY, size_bytes=1234)
    assert f'href="{path}/low.mp4"' in await page(client, path)
    record = await answered(await client.post(f"/api{path}/low.mp4"))
    assert (record["state"], record["sizeBytes"], record["isEstimate"]) == ("ready", 1234, False)
    address = (await client.get(f"{path}/low.mp4")).headers["Location"]
    assert f"/hls/{video.id}/downloads/" in address


async def test_storage_serves_the_original_under_its_file_name(client: Client) -> None:
    file_name = '日本 "🎬".mov'
    upload = await presign(client)
    # Other headers of the upload are not passed on.
    headers = {"Cache-Control": "public, max-age=86400", "Content-Disposition": "inline"}
    assert await put(upload["uploadUrl"], RAW_FILE, **headers) == 200
    body = metadata(upload["key"], fileName=file_name)
    record = await answered(await client.post("/api/videos", json=body), 201)
    path = f"/videos/{record['id']}/downloads/original"
    assert f'href="{path}"' in await page(client, f"/videos/{record['id']}/downloads")
    response = await client.get(path)
    address = response.headers["Location"]
    assert response.status_code == 302
    assert response.headers["Cache-Control"] == "private, no-store"
    # Public videos may become private soon.
    assert parse_qs(urlsplit(address).query)["X-Amz-Expires"] == ["300"]
    async with aiohttp.ClientSession() as session, session.get(address) as answer:
        assert answer.status == 200
        assert await answer.read() == RAW_FILE
        assert answer.headers["Cache-Control"] == "private, max-age=300"
        assert answer.content_disposition is not None
        assert answer.content_disposition.type == "attachment"
        assert answer.content_disposition.filename == file_name
        assert 'filename="__ ___.mov"' in answer.headers["Content-Disposition"]


async def test_names_of_files_keep_their_direction(client: Client, resources: WebContext) -> None:
    video = await make_ready(resources, audience="public")
    await change_video(video.id, file_name="holiday\u202e4pm.exe")
    await Caption.filter(video_id=video.id).update(label="English\u202e")
    text = await page(client, f"/videos/{video.id}/downloads")
    assert "holiday4pm.exe" in text
    assert "\u202e" not in text
    saved = await client.get(f"/videos/{video.id}/downloads/en.vtt")
    assert "%E2%80%AE" not in saved.headers["Content-Disposition"]
