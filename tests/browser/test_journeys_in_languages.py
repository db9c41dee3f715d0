"""An editor's way through the portal in each language: upload, watch, caption, cut, share.

Elements are found by what they do, because their names differ. One language shows that the scripts
use its catalogue; tests/languages checks all catalogues. The other languages are for readers of
them: with PORTAL_SCREENSHOTS and `-m slow` the pages of all languages are saved.
"""

from pathlib import Path

import pytest
from chromium import TRANSCODE_TIMEOUT_MS, play_past, save_screenshots
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg
from upload_page import choose, open_upload, publish_button

CAPTIONS = "WEBVTT\n\n00:00.000 --> 00:01.000\nMoin!\n\n00:01.200 --> 00:02.000\nTschüs!\n"


@pytest.fixture(scope="session")
def silent_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film of three seconds without sound, of which the upload page warns."""
    picture = ("-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=3")
    path = tmp_path_factory.mktemp("silent") / "elbe.mp4"
    return run_ffmpeg(path, *picture, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "30")


@pytest.mark.slow
@pytest.mark.parametrize(
    "language", ["de", *(pytest.param(code, marks=pytest.mark.soak) for code in ("es", "fr", "it"))]
)
async def test_editors_way_through_the_portal(
    page: Page, silent_film: Path, tmp_path: Path, language: str
) -> None:
    async def look(name: str) -> None:
        await page.wait_for_load_state("networkidle")
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await save_screenshots(page, f"{language}-{name}")

    await page.goto("/")
    await page.locator(f"[data-languages] [value={language}]").click()
    await look("library")
    await open_upload(page)
    await choose(page, silent_film)
    await expect(page.locator("[data-findings] li")).to_have_count(1)
    await look("upload")
    await page.locator("[name=title]").fill("Elbe")
    category = page.locator("[data-multi-select] input[role=combobox]")
    await category.press("ArrowDown")
    await category.press("Enter")
    await category.press("Escape")
    await publish_button(page).click()
    published = page.locator("a[data-video]")
    await expect(published).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    await look("published")
    address = await published.get_attribute("href") or ""
    await page.goto(address)
    await page.locator("media-play-button").first.wait_for(timeout=TRANSCODE_TIMEOUT_MS)
    await play_past(page, 1)
    await page.locator("media-settings-menu-button").press("Enter")
    await look("watch")
    for part in await page.locator("[data-share], [data-clip-panel]").locator("summary").all():
        await part.click()
    await look("share")
    await page.goto(f"{address}/edit")
    captions = tmp_path / "captions.vtt"
    captions.write_text(CAPTIONS, encoding="utf-8")
    form = page.locator("form[action$='/captions']")
    await page.locator("details").filter(has=form).locator("summary").last.click()
    await form.locator("[name=language]").fill("de")
    await form.locator("[type=file]").set_input_files([captions])
    await form.locator("[type=submit]").click()
    await expect(page.locator("a[href$='/captions/de/edit']").first).to_be_visible()
    await look("edit")
    await page.goto(f"{address}/captions/de/edit")
    await expect(page.locator("[data-cue=text]").first).to_have_value("Moin!")
    await look("captions")
    await page.goto(f"{address}/cuts")
    await page.locator("[data-does=cut]").first.wait_for()
    await page.locator("[data-position]").click()
    await page.keyboard.press("i")
    await play_past(page, 1)
    await page.keyboard.press("o")
    await page.locator("[data-does=cut]").first.click()
    await look("cuts")
    for path in ("statistics", "downloads", "delete"):
        await page.goto(f"{address}/{path}")
        await look(path)
    for path in ("statistics", "webhooks", "videos", "set-up"):
        await page.goto(f"/{path}")
        await look(f"all-{path}")
