"""The page on which editors cut a video."""

import re
from typing import Any

import pytest
from chromium import Publish, suits_everyone
from player_page import make_film, open_player, read, wait_for
from playwright.async_api import Page, Route, expect

# Browsers log refused requests as errors.
pytestmark = pytest.mark.complaint("status of (412|422|503)|ERR_FAILED")
# Changes the film of the only draft.
NAME_ANOTHER_FILM = """() => {
    const key = Object.keys(localStorage).find((key) => key.startsWith("portal.cuts."));
    const draft = JSON.parse(localStorage.getItem(key));
    localStorage.setItem(key, JSON.stringify({ ...draft, film: "another" }));
}"""


@pytest.fixture(scope="session")
async def own_film(publish: Publish, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Id of a film of 24 s at 10 frames per second, which only these tests cut."""
    film = make_film(tmp_path_factory.mktemp("cut"), size="320x180")
    return await publish(film, "To be cut", until="ready")


async def mark(page: Page, at_s: float, key: str) -> None:
    """Go to a time, and press a key there."""
    await read(page, f"void (video.currentTime = {at_s})")
    await wait_for(page, "!video.seeking")
    await page.keyboard.press(key)


async def looks_of_handles(page: Page) -> int:
    """Return how many looks the handles have: with the focus on neither, the first, the second."""
    strip = page.locator("[data-strip]")
    looks = set()
    for name in ("Position", "Start of the selection", "End of the selection"):
        await page.get_by_label(name, exact=True).focus()
        looks.add(await strip.screenshot())
    return len(looks)


async def cuts_of(page: Page, video_id: str) -> dict[str, Any]:
    """Return the recorded cuts."""
    answer: dict[str, Any] = await (await page.request.get(f"/api/videos/{video_id}/cuts")).json()
    return answer


@pytest.mark.slow
async def test_a_part_is_cut_previewed_and_saved_by_keyboard(page: Page, own_film: str) -> None:
    await open_player(page, f"/videos/{own_film}/cuts")
    lengths = page.locator("[data-lengths]")
    await expect(lengths).to_contain_text("nothing removed")
    for at_s, key in ((4.05, "i"), (9.95, "o")):
        await mark(page, at_s, key)
    await expect(page.get_by_label("Start", exact=True)).to_have_value("0:04.000")
    # The frame at the end is part of the selection.
    await expect(page.get_by_label("End", exact=True)).to_have_value("0:10.000")
    handle = page.get_by_label("End of the selection")
    for key, end in (("ArrowLeft", "9.900"), ("ArrowLeft", "9.800"), ("ArrowRight", "9.900")):
        await handle.press(key)
        await expect(page.get_by_label("End", exact=True)).to_have_value(f"0:0{end}")
    # The player shows the last selected frame.
    await wait_for(page, "!video.seeking && Math.abs(video.currentTime - 9.85) < 0.01")
    # The handle with the focus looks different from the other one.
    assert await looks_of_handles(page) == 3
    await handle.focus()
    removed = "0:05.900 removed"
    for key, words in (("x", removed), ("Control+z", "nothing"), ("Control+Shift+z", removed)):
        await page.keyboard.press(key)
        await expect(lengths).to_contain_text(words)
        # The handle is gone, and the keyboard goes on at the strip.
        await expect(page.get_by_label("Position", exact=True)).to_be_focused()
    # Unsaved cuts survive a reload.
    await page.reload()
    await wait_for(page, "video.readyState >= 2")
    await expect(lengths).to_contain_text(removed)
    await page.get_by_role("button", name="Change: 0:04.000 \N{EN DASH} 0:09.900").press("Enter")
    field = page.get_by_label("Start", exact=True)
    await expect(field).to_be_focused()
    await field.fill("3")
    await field.press("Enter")
    await expect(lengths).to_contain_text("0:06.900 removed")
    await suits_everyone(page, "cutting")
    await read(page, "void (video.currentTime = 2.5)")
    preview = page.get_by_role("button", name="Preview result")
    await preview.press("Enter")
    # The preview plays no part between the bounds.
    played = "[...Array(video.played.length).keys()].map((at) => video.played.start(at))"
    await wait_for(page, "video.currentTime > 10.2")
    assert all(not 3.1 < at_s < 9.8 for at_s in await read(page, played))
    await page.keyboard.press("p")
    await wait_for(page, "video.paused")
    # The preview ends before a removed last part, or with the film, and then starts again.
    await mark(page, 23.05, "i")
    await page.keyboard.press("x")
    for last_s in (22.4, 23.4):
        await read(page, f"void (video.currentTime = {last_s})")
        await page.keyboard.press("p")
        await expect(preview).to_have_attribute("aria-pressed", "false")
        await page.keyboard.press("p")
        await wait_for(page, "!video.paused && video.currentTime < 2")
        await page.keyboard.press("p")
        await wait_for(page, "video.paused")
        if last_s < 23:
            await page.keyboard.press("Control+z")
    await page.keyboard.press("Control+s")
    state = page.locator("#cuts-state")
    await expect(state).to_contain_text("Viewers get the cut video (0:17).")
    cuts = await cuts_of(page, own_film)
    assert cuts["state"] == "live"
    assert cuts["keep"][0] == {"startSeconds": 0, "endSeconds": 3}
    await page.get_by_role("button", name="Undo all cuts").press("Enter")
    await page.keyboard.press("Control+s")
    await expect(state).to_contain_text("Viewers get the whole video.")
    assert (await cuts_of(page, own_film))["keep"] is None


@pytest.mark.slow
async def test_a_drag_selects_and_the_player_stays_in_the_window(page: Page, own_film: str) -> None:
    vtt = "WEBVTT\n\n00:02.000 --> 00:06.000\nFirst.\n\n00:06.000 --> 00:20.000\nSecond.\n"
    captions = f"/api/videos/{own_film}/captions/en"
    headers = {"Content-Type": "text/vtt"}
    await page.request.put(captions, data=vtt, headers=headers)
    await open_player(page, f"/videos/{own_film}/cuts")
    await expect(page.locator("[data-lengths]")).to_contain_text("nothing removed")
    fields = [page.get_by_label(name, exact=True) for name in ("Start", "End")]
    current = page.locator("[data-sentence][aria-current]")
    player = page.locator("#player media-controller")
    for width in (1440, 360):
        await page.set_viewport_size({"width": width, "height": 780})
        # From the second half back to the first sixth.
        await drag(page, "[data-strip-thumbnails]", 0.5, 1 / 6)
        for field, value in zip(fields, ("0:04.", "0:12."), strict=True):
            await expect(field).to_have_value(re.compile(rf"^{value}[01]00$"))
        await wait_for(page, "!video.seeking && Math.abs(video.currentTime - 4) < 0.2")
        await expect(current).to_contain_text("First.")
        # The ruler moves the playhead alone.
        await drag(page, "[data-strip-ruler]", 0.1, 0.6)
        await wait_for(page, "!video.seeking && Math.abs(video.currentTime - 14.4) < 0.2")
        await expect(current).to_contain_text("Second.")
        await expect(fields[0]).not_to_have_value("")
        # A click outside of the selection moves the playhead, too.
        await drag(page, "[data-strip-thumbnails]", 0.9, 0.9)
        await wait_for(page, "!video.seeking && Math.abs(video.currentTime - 21.6) < 0.2")
        last = page.get_by_text("Save as a new video")
        await last.scroll_into_view_if_needed()
        await expect(player).to_be_in_viewport(ratio=1)
        await fields[0].focus()
        await expect(fields[0]).to_be_in_viewport(ratio=1)
        await expect(player).to_be_in_viewport(ratio=1)
    await page.request.delete(captions)


async def drag(page: Page, selector: str, start: float, end: float) -> None:
    """Drag over an element between two shares of its width."""
    element = page.locator(selector)
    await element.scroll_into_view_if_needed()
    box = await element.bounding_box()
    assert box is not None
    at_y = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] * start, at_y)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * end, at_y, steps=5)
    await page.mouse.up()


@pytest.mark.slow
async def test_cuts_of_someone_else_are_a_conflict_that_loses_nothing(
    page: Page, own_film: str
) -> None:
    await open_player(page, f"/videos/{own_film}/cuts")
    lengths = page.locator("[data-lengths]")
    await expect(lengths).to_contain_text("nothing removed")
    theirs = {"keep": [{"startSeconds": 0, "endSeconds": 20}]}
    await page.request.put(f"/api/videos/{own_film}/cuts", data=theirs)
    for at_s, key in ((4.05, "i"), (9.95, "o")):
        await mark(page, at_s, key)
    await page.keyboard.press("x")
    await page.get_by_role("button", name="Save cuts").click()
    await expect(page.locator("[data-message]")).to_contain_text("Someone else has changed")
    await expect(lengths).to_contain_text("0:06.000 removed")
    await page.keyboard.press("Control+z")
    await expect(lengths).to_contain_text("→ 0:20.000")
    await page.keyboard.press("Control+Shift+z")
    await page.get_by_role("button", name="Save cuts").click()
    await expect(page.locator("[data-message]")).to_have_text("Saved.")
    cuts = await cuts_of(page, own_film)
    assert cuts["keep"][0]["endSeconds"] == 4

    # The answers of a portal on which the file was replaced.
    async def answer(route: Route) -> None:
        status = 412 if route.request.method == "PUT" else 200
        other = cuts | {"keep": [{"startSeconds": 0, "endSeconds": 3}], "filmUrl": "another"}
        await route.fulfill(status=status, json=other | {"code": "cuts_changed"})

    await page.route(f"**/api/videos/{own_film}/cuts", answer)
    await page.get_by_role("button", name="Undo all cuts").click()
    await page.keyboard.press("Control+s")
    await expect(page.locator("[data-fault]")).to_contain_text("was replaced. Reload the page")
    await expect(lengths).to_contain_text("nothing removed")
    await expect(page.get_by_role("button", name="Save cuts")).to_be_disabled()
    await page.unroute_all()
    # Nor does a draft meet another film.
    await page.evaluate(NAME_ANOTHER_FILM)
    await page.reload()
    await expect(page.locator("[data-message]")).to_contain_text("were dropped")
    await expect(lengths).to_contain_text("0:06.000 removed")
    await page.request.put(f"/api/videos/{own_film}/cuts", data={"keep": None})


@pytest.mark.slow
async def test_keys_reach_what_has_the_focus(page: Page, own_film: str) -> None:
    await open_player(page, f"/videos/{own_film}/cuts")
    lengths = page.locator("[data-lengths]")
    message = page.locator("[data-message]")
    await expect(lengths).to_contain_text("nothing removed")
    for at_s, key in ((4.05, "i"), (9.95, "o")):
        await mark(page, at_s, key)
    await page.keyboard.press("x")
    change = page.get_by_role("button", name="Change: ")
    await change.press("Enter")
    # A time is saved while it is typed.
    field = page.get_by_label("Start", exact=True)
    await field.fill("3")
    await field.press("Control+s")
    await expect(lengths).to_contain_text("0:07.000 removed")
    await expect(message).to_have_text("Saved.")
    await expect(field).to_be_focused()
    # The list keeps the focus, and the dialog of shortcuts the keys.
    await change.focus()
    for is_pressed in ("true", "false"):
        await page.keyboard.press("p")
        preview = page.get_by_role("button", name="Preview result")
        await expect(preview).to_have_attribute("aria-pressed", is_pressed)
    await expect(change).to_be_focused()
    for at_s, key in ((12.05, "i"), (13.95, "o")):
        await mark(page, at_s, key)
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    # All keys of the page are listed.
    listed = set(re.sub(r"\s+", "", (await dialog.locator("dl").first.inner_text()).lower()))
    for key in await page.locator("[data-key]").evaluate_all(
        "(buttons) => buttons.map(({ dataset }) => dataset.key.split('+').at(-1) || '+')"
    ):
        assert key.replace("-", "\N{MINUS SIGN}") in listed
    await page.keyboard.press("x")
    await page.keyboard.press("Escape")
    await expect(lengths).to_contain_text("0:07.000 removed")
    await page.keyboard.press("x")
    await expect(lengths).to_contain_text("0:09.000 removed")
    # The saved cuts are those that this page has saved.
    await page.reload()
    await expect(message).to_contain_text("Your cuts are kept in this browser.")
    await page.request.put(f"/api/videos/{own_film}/cuts", data={"keep": None})


@pytest.mark.slow
async def test_sentences_of_the_transcript_are_cut(page: Page, own_film: str) -> None:
    vtt = "WEBVTT\n\n" + "".join(
        f"00:{at:02}.000 --> 00:{at + 2:02}.000\nSentence {at}.\n\n" for at in range(2, 14, 3)
    )
    headers = {"Content-Type": "text/vtt"}
    address = f"/api/videos/{own_film}/captions/en"
    await page.request.put(address, data=vtt, headers=headers)
    # The portal doesn't answer at first, nor does storage.
    await page.route("**/api/videos/*/cuts", lambda route: route.fulfill(status=503))
    await page.route("**/*.vtt", lambda route: route.fulfill(status=503))
    await open_player(page, f"/videos/{own_film}/cuts")
    message = page.locator("[data-message]")
    await expect(message).to_contain_text("Trying again")
    await page.unroute("**/api/videos/*/cuts")
    await expect(message).to_be_empty()
    fault = page.locator("[data-strip-fault]")
    await expect(fault).to_contain_text("Trying again")
    await page.unroute_all()
    await expect(fault).to_be_empty()
    await expect(page.locator("[data-strip-thumbnails] span").first).to_be_visible()
    await page.get_by_role("checkbox", name="Sentence 5.").check()
    await page.get_by_text("Sentence 11.").click(modifiers=["Shift"])
    await expect(page.get_by_role("checkbox", name="Sentence 8.")).to_be_checked()
    await page.get_by_role("button", name="Cut these sentences").click()
    await expect(page.locator("[data-list] [data-times]")).to_have_text(
        "0:05.000 \N{EN DASH} 0:13.000"
    )
    await expect(page.locator(".sentence--cut")).to_have_count(3)
    await page.get_by_text("Save as a new video").press("Enter")
    title = page.get_by_label("Title")
    await expect(title).to_have_value("To be cut (cut)")
    fault = page.locator("#copy-title-error")

    async def lose_answer(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await title.fill(" ")
    await title.press("Enter")
    await expect(fault).to_contain_text("title")
    await page.route("**/copies", lose_answer, times=1)
    await title.fill("Without sentences")
    await title.press("Enter")
    await expect(fault).to_contain_text("can’t be reached")  # noqa: RUF001
    # The video is created once.
    await title.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Without sentences")
    videos = await page.request.get("/api/videos?q=Without+sentences")
    assert len((await videos.json())["videos"]) == 1
    # The link appears with the player, and the editor once the film can be cut.
    await page.get_by_role("link", name="Cut", exact=True).click()
    await expect(page.locator("[data-lengths]")).to_contain_text("0:08.000 removed")
