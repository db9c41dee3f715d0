"""Quotas on pages: a line, a warning near the limit, and the remedy at the limit."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from page_texts import page, words_of
from quart import Quart
from signed_in import Sender, make_account, make_upload, make_video

from portal.database.account_models import Account, Role
from portal.database.models import Upload, Video
from portal.http.formatting import moment_in_words
from portal.uploads.quotas import Quota

SIZE = 1_234_567
GB = 10**9
pytestmark = pytest.mark.shared_app


def limit(app: Quart, *, videos: int = 0, stored_bytes: int = 0) -> None:
    app.extensions["portal"] = replace(app.extensions["portal"], quota=Quota(videos, stored_bytes))


async def with_videos(owner: Account, count: int) -> None:
    """Let an account have published so many videos an hour ago."""
    for _ in range(count):
        await make_video(owner, created_at=datetime.now(UTC) - timedelta(hours=1))


def quota_of(text: str) -> str:
    """Return the text about the quota on a page, on one line; empty without a quota."""
    match = re.search(r'<div class="quota.*?</div>\s*</div>', text, re.DOTALL)
    return words_of(match[0]) if match else ""


def left_on(text: str) -> tuple[int | None, int | None]:
    """Return the videos and bytes in the data of the upload page's script."""
    match = re.search(r'data-limits="([^"]*)"', text)
    assert match
    remaining = json.loads(unescape(match[1]))["left"]
    return remaining["videos"], remaining["size_bytes"]


async def test_pages_show_the_used_quota_and_when_the_next_video_is_possible(
    app: Quart, editor: Sender, edith: Account
) -> None:
    limit(app, videos=10, stored_bytes=20 * GB)
    await with_videos(edith, 3)
    upload = await make_upload(edith)
    await Upload.filter(id=upload).update(size_bytes=2 * GB)
    text = await page(editor, "/upload")
    assert quota_of(text) == "3 of 10 videos in the last 24 hours 2.0 GB of 20.0 GB used"
    assert left_on(text) == (7, 18 * GB - 3 * SIZE)
    assert "notice--" not in text[text.index('class="quota') :][:60]

    limit(app, videos=3, stored_bytes=20 * GB)
    text = await page(editor, "/upload")
    first = await Video.all().order_by("created_at").first()
    assert first is not None
    words = quota_of(text)
    assert "reached your publishing limit 3 of 3 videos" in words
    assert f"after {moment_in_words(first.created_at + timedelta(hours=24))} ." in words
    assert "An owner of this portal can raise your limit." in words
    assert "Delete videos to free up space" not in words
    assert 'class="quota notice notice--bad"' in text
    assert left_on(text)[0] == 0
    assert "reached your publishing limit" in quota_of(await page(editor, "/account"))

    limit(app, stored_bytes=2 * GB)
    words = quota_of(await page(editor, "/upload"))
    assert "Delete videos to free up space" in words
    assert "next video" not in words


async def test_admins_see_the_quota_of_each_account(
    app: Quart, owner: Sender, olga: Account, edith: Account
) -> None:
    await make_account("vera", Role.VIEWER)
    await with_videos(edith, 2)
    assert "in the last 24 hours" not in await page(owner, "/people")
    limit(app, videos=3, stored_bytes=GB)
    text = await page(owner, "/people")
    entries = dict(re.findall(r"<bdi>(\w+)@example.org</bdi>(.*?)</li>", text, re.DOTALL))
    assert "<span>2 of 3 videos in the last 24 hours</span>" in entries["edith"]
    assert "<span>2.5 MB of 1.0 GB used</span>" in entries["edith"]
    assert "<span>0 of 3 videos in the last 24 hours</span>" in entries["olga"]
    assert "in the last 24 hours" not in entries["vera"]
