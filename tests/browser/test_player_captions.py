"""Captions whose language is not known: they come when they were chosen, and only then."""

from pathlib import Path

import pytest
from chromium import Finish, Publish, play_past
from player_page import make_untagged_film, open_player, read, wait_for
from playwright.async_api import Page

CAPTIONS = "[...video.textTracks].filter((track) => track.kind === 'subtitles')"
SHOWN = f"{CAPTIONS}.filter((track) => track.mode === 'showing')"


@pytest.fixture(scope="session")
async def untagged_film(
    publish: Publish, finish: Finish, short_video: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The id of a video with one subtitle track that names no language."""
    film = make_untagged_film(tmp_path_factory.mktemp("untagged"), short_video)
    video_id = await publish(film, "A film in no language")
    assert await finish(video_id) == "ready"
    return video_id


@pytest.mark.slow
async def test_captions_without_a_language_come_back_only_if_they_were_on(
    page: Page, untagged_film: str
) -> None:
    await open_player(page, f"/videos/{untagged_film}")
    await wait_for(page, f"{CAPTIONS}[0]?.language === ''")
    await page.keyboard.press("c")
    await wait_for(page, f"{SHOWN}.length === 1")
    await page.reload()
    await wait_for(page, f"{SHOWN}.length === 1")
    await page.keyboard.press("c")
    await wait_for(page, f"{SHOWN}.length === 0")
    await page.reload()
    await wait_for(page, f"{CAPTIONS}.length === 1")
    await play_past(page, 0.5)
    assert await read(page, f"{SHOWN}.length") == 0
