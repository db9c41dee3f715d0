"""The player by mouse, keys and touch, on the page and in a frame of another site."""

import re

import pytest
from chromium import FINISH_ANIMATIONS, OpenPage, play_past
from framing_site import framing_site, show_framed
from player_page import FILM_S, open_player, read, wait_for
from playwright.async_api import FloatRect, Locator, Page, expect
from running_portal import IMPRINT, LivePortal

CAPTIONS = "[data-player-captions]"
# Cues as hls.js creates them from CEA-608: two rows at the top left, one at the bottom right.
PLACED = """() => {
    const track = document.querySelector("video").addTextTrack("captions");
    track.mode = "showing";
    const add = (text, placed) => track.addCue(Object.assign(new VTTCue(0, 20, text), placed));
    add("first", { line: 1, align: "left", position: 10 });
    add("second", { line: 2, align: "left", position: 10 });
    add("<i>last</i>", { line: 15, align: "left", position: 60 });
}"""
SIGN_OF_A_KEY = """() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "m", bubbles: true }));
    return document.querySelector("[data-player-sign]").checkVisibility();
}"""
THUMB_PX = 44
# Dispatched in one task, because on a busy machine taps would be too far apart.
TAP = """([times, share]) => {
    const video = document.querySelector("video");
    const { left, top, width, height } = video.getBoundingClientRect();
    const at = { clientX: left + width * share, clientY: top + height / 3 };
    const finger = { pointerType: "touch", isPrimary: true, bubbles: true, composed: true, ...at };
    for (let tap = 0; tap < times; tap += 1) {
        video.dispatchEvent(new PointerEvent("pointerdown", finger));
        video.dispatchEvent(new PointerEvent("pointerup", finger));
    }
}"""
NO_STORAGE = """
Object.defineProperty(window, "localStorage", {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
});
"""


@pytest.fixture
async def player(page: Page, film: str) -> Page:
    """Page of the film, ready to play."""
    await open_player(page, f"/videos/{film}")
    return page


async def test_poster_and_length_are_shown_before_playback_and_little_is_fetched(
    player: Page,
) -> None:
    assert re.search(r"/poster\.jpg\?v=\d+-0$", await read(player, "video.poster"))
    assert await read(player, "video.currentTime") == 0
    await wait_for(player, "video.buffered.length && video.buffered.end(0) >= 4")
    # Half of the film are three segments, whose sound ends up to a tenth of a second later.
    assert await read(player, "video.buffered.end(0)") <= FILM_S / 2 + 0.1
    # The page rounds 24.6 s to 0:25; media-chrome alone would show 0:24.
    display = player.locator("media-time-display")
    await read(player, "void (video.dataset.duration = 24.6, video.currentTime = 2)")
    await expect(display).to_have_text("0:02 / 0:25")
    await read(player, "void (video.currentTime = video.duration)")
    await expect(display).to_have_text("0:25 / 0:25")


async def choose(page: Page, menu: str, item: str) -> None:
    """Choose an item in one of the menus behind the settings button."""
    await page.locator("media-settings-menu-button").click()
    entry = page.locator("media-settings-menu-item").filter(has_text=menu)
    await entry.click(position={"x": 20, "y": 10})
    await page.get_by_role("menuitemradio", name=re.compile(f"^{item}")).click()


async def test_chosen_quality_is_kept_for_all_videos(
    page: Page, film: str, ready_video: str
) -> None:
    chosen = "video.videoRenditions.items[video.videoRenditions.selectedIndex]?.name"
    await open_player(page, f"/videos/{film}")
    names = page.locator("media-rendition-menu").get_by_role("menuitemradio", include_hidden=True)
    await expect(names).to_contain_text(["480p", "360p", "240p", "Auto"])
    await choose(page, "Quality", "240p")
    await play_past(page, 0)
    await wait_for(page, "video.videoHeight < 250")
    # The best quality of this video is 180p.
    await open_player(page, f"/videos/{ready_video}")
    assert await read(page, f"{chosen} === video.videoRenditions.items[0].name")
    async with page.expect_request("**/240p/*.m4s*"):
        await open_player(page, f"/embed/{film}")
    assert await read(page, chosen) == 240
    await choose(page, "Quality", "Auto")
    await page.reload()
    await wait_for(page, "video.readyState >= 2")
    assert await read(page, "video.videoRenditions.selectedIndex") == -1


async def test_languages_are_chosen_and_captions_are_remembered(player: Page) -> None:
    showing = "[...video.textTracks].filter((track) => track.mode === 'showing')"
    assert await read(player, f"{showing}.length") == 0
    async with player.expect_response(lambda answer: "/audio-2/" in answer.url):
        await choose(player, "Audio", "German")
    await player.keyboard.press("Escape")
    await choose(player, "Captions", "German")
    await play_past(player, 1)
    await wait_for(player, f"{showing}[0]?.activeCues?.[0]?.text === 'Guten Morgen.'")
    assert await read(player, "video.audioTracks.selectedIndex") == 1
    await player.reload()
    await wait_for(player, f"video.readyState >= 2 && {showing}[0]?.language === 'de'")
    await player.keyboard.press("c")
    await wait_for(player, f"{showing}.length === 0")
    # The choice is stored in a later task.
    await player.evaluate("new Promise((resolve) => setTimeout(resolve))")
    await player.reload()
    await wait_for(player, "video.textTracks.length === 3")
    assert await read(player, f"{showing}.length") == 0


async def test_captions_avoid_controls_preview_and_menu(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    await choose(page, "Captions", "English")
    await page.keyboard.press("Escape")
    await page.evaluate("scrollTo(0, 0)")
    text = page.locator(CAPTIONS).get_by_text("Good morning.")
    await play_past(page, 1)
    await expect(page.locator("media-controller")).to_have_attribute("userinactive", "")
    alone = await _place(text)
    await read(page, "video.pause()")
    await page.locator("media-time-range").hover()
    await expect(page.locator(".player__bar")).to_have_css("opacity", "1")
    preview = page.locator("media-time-range [part~='preview-box']")
    await expect(preview).to_be_visible()
    await page.evaluate(FINISH_ANIMATIONS)
    beside = await _place(text)
    assert beside["y"] + beside["height"] <= (await _place(preview))["y"]
    assert beside["y"] < alone["y"]
    await page.locator("media-settings-menu-button").click()
    await expect(text).to_be_hidden()
    await page.keyboard.press("Escape")
    await expect(text).to_be_visible()


async def test_captions_are_drawn_at_their_positions(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    await page.evaluate(PLACED)
    await play_past(page, 0.5)
    # While it plays, captions are drawn anew, and end after 20 s.
    await read(page, "void video.pause()")
    captions = page.locator(CAPTIONS)
    first, second, last = [
        await _place(captions.locator("p", has_text=text)) for text in ("first", "second", "last")
    ]
    assert first["x"] == second["x"] < last["x"]
    assert first["y"] < first["y"] + first["height"] <= second["y"] + 1
    assert last["y"] > second["y"] + second["height"] * 5


async def _place(text: Locator) -> FloatRect:
    """Return the place of an element; captions have none for a moment while they are drawn anew."""
    while (box := await text.bounding_box()) is None:
        pass
    return box


async def test_keys_work_without_a_click_on_the_player_and_show_their_effect(
    player: Page,
) -> None:
    sign = player.locator("[data-player-sign]")
    for key, outcome, words in (
        ("l", "video.currentTime === 20", "+10 s"),
        ("j", "video.currentTime === 0", "−10 s"),  # noqa: RUF001 - a minus
        ("ArrowRight", "video.currentTime === 15", "+5 s"),
        # The film has 10 frames a second.
        (".", "Math.abs(video.currentTime - 10.15) < 0.01", ""),
        (",", "Math.abs(video.currentTime - 9.95) < 0.01", ""),
        ("7", "Math.abs(video.currentTime - 0.7 * video.duration) < 0.1", ""),
        ("m", "video.muted", "Muted"),
        ("c", "[...video.textTracks].some((track) => track.mode === 'showing')", ""),
        (">", "video.playbackRate === 1.25", "1.25×"),  # noqa: RUF001 - multiplication
        ("<", "video.playbackRate === 1", "1×"),  # noqa: RUF001
        ("k", "!video.paused", ""),
        (" ", "video.paused", ""),
        # The button is updated a frame after the document, and its state decides the next press.
        ("f", "document.querySelector('media-fullscreen-button').mediaIsFullscreen", ""),
        ("f", "!document.fullscreenElement", ""),
    ):
        await read(player, "void (video.currentTime = 10)")
        await player.keyboard.press(key)
        await wait_for(player, outcome)
        if words:
            await expect(sign).to_have_text(words)
    # Checked in one task, because the sign disappears soon.
    assert await player.evaluate(SIGN_OF_A_KEY)
    await expect(sign).to_be_hidden()
    assert await player.evaluate("scrollY") == 0


async def test_focused_elements_keep_their_own_keys(player: Page) -> None:
    await player.evaluate(
        "document.querySelector('#main').prepend(document.createElement('input'))"
    )
    field = player.locator("#main > input")
    await field.focus()
    await player.keyboard.type("k m 5")
    await expect(field).to_have_value("k m 5")
    await player.locator("media-mute-button").focus()
    await player.keyboard.press(" ")
    await wait_for(player, "video.muted")
    assert await read(player, "video.paused && video.currentTime === 0")
    # Outside the player these keys scroll the page.
    await read(player, "document.activeElement.blur()")
    await player.set_viewport_size({"width": 1280, "height": 300})
    await player.keyboard.press("End")
    await wait_for(player, "scrollY > 0")
    assert await read(player, "video.currentTime") == 0
    await player.locator("media-controller").focus()
    await player.keyboard.press("ArrowDown")
    await wait_for(player, "video.volume === 0.95")
    await player.keyboard.press("End")
    # The last segment may lengthen the film by less than a frame.
    await wait_for(player, "video.duration - video.currentTime < 0.1")


async def test_character_keys_are_switched_off_in_the_dialog_of_the_menu(player: Page) -> None:
    keys = player.get_by_role("dialog", name="Keyboard shortcuts")
    letters = keys.get_by_role("switch")
    button = player.locator("media-settings-menu-button")
    await button.click()
    await player.locator("[data-opens-keys]").click()
    await expect(letters).to_be_checked()
    await keys.get_by_role("button", name="Close").click()
    await expect(keys).to_be_hidden()
    await expect(button).to_be_focused()
    await player.keyboard.press("Enter")
    await expect(player.locator("media-settings-menu-item:focus")).to_have_count(1)
    await player.keyboard.press("End")
    await player.keyboard.press("Enter")
    await letters.uncheck()
    await player.keyboard.press("Escape")
    await expect(player.locator("media-settings-menu")).to_be_hidden()
    await expect(button).to_be_focused()

    await player.reload()
    await wait_for(player, "video.readyState >= 2")
    state = "[video.currentTime, video.muted, video.paused, video.playbackRate]"
    before = await read(player, state)
    for key in ("k", "j", "m", "c", "f", "5", ">", "?", " "):
        await player.keyboard.press(key)
    await player.locator("media-controller").focus()
    await player.keyboard.press("m")
    assert await read(player, state) == before
    await expect(keys).to_be_hidden()
    # Other keys still work inside the player.
    await player.keyboard.press("ArrowRight")
    await wait_for(player, "video.currentTime === 5")
    await player.keyboard.press(" ")
    await wait_for(player, "!video.paused")


async def test_position_volume_and_speed_are_remembered(player: Page) -> None:
    await read(player, "void (video.volume = 0.3, video.playbackRate = 1.25)")
    await read(player, "void (video.currentTime = 9)")
    await play_past(player, 10)
    await read(player, "video.pause()")
    await player.reload()
    await wait_for(player, "video.readyState >= 2 && video.currentTime >= 10")
    assert await read(player, "[video.volume, video.playbackRate, video.muted]") == [
        0.3,
        1.25,
        True,
    ]


async def test_address_has_the_start_time_and_the_time_bar_shows_the_storyboard(
    page: Page, film: str
) -> None:
    await open_player(page, f"/videos/{film}?t=0:12")
    await wait_for(page, "Math.abs(video.currentTime - 12) < 0.1")
    loaded = (
        "[...video.textTracks].some((track) => track.kind === 'metadata' && track.cues?.length)"
    )
    await wait_for(page, loaded)
    bar = await _place(page.locator("media-time-range"))
    await page.mouse.move(bar["x"] + bar["width"] * 0.27, bar["y"] + bar["height"] / 2)
    await expect(page.locator("media-preview-thumbnail img")).to_be_visible()
    await expect(page.locator("media-preview-time-display")).to_have_text("0:06")


@pytest.mark.parametrize(
    ("path", "height"), [("videos", 740), pytest.param("embed", 203, marks=pytest.mark.slow)]
)
async def test_menu_is_a_sheet_on_a_small_screen(
    open_page: OpenPage, film: str, path: str, height: int
) -> None:
    page = await open_page(
        width=360, height=height, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    await open_player(page, f"/{path}/{film}")
    menu = page.locator("media-settings-menu")
    close = page.get_by_role("button", name="Close")
    await _open_sheet(page)
    await _expect_reachable(page, close)
    await close.tap()
    await expect(menu).to_be_hidden()
    await expect(close).to_be_hidden()
    # A tap on the page around the menu closes it.
    await _open_sheet(page)
    await page.touchscreen.tap(180, 8)
    await expect(menu).to_be_hidden()
    await _open_sheet(page)
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(page.locator("media-settings-menu-button")).to_be_focused()
    assert await read(page, "video.paused && video.played.length === 0")

    await _open_sheet(page)
    entries = page.locator("media-settings-menu-item:visible")
    for entry in await entries.all():
        await _expect_reachable(page, entry)
    await entries.filter(has_text="Speed").tap(position={"x": 20, "y": 20})
    rows = page.locator("media-playback-rate-menu").get_by_role("menuitemradio")
    await expect(rows).to_have_count(8)
    for row in await rows.all():
        await _expect_reachable(page, row)
    await rows.last.tap()
    await wait_for(page, "video.playbackRate === 2")


async def _open_sheet(page: Page) -> None:
    await page.locator("media-settings-menu-button").tap()
    menu = page.locator("media-settings-menu")
    await expect(menu).to_be_visible()
    await expect(menu).to_have_css("position", "fixed")


async def _expect_reachable(page: Page, row: Locator) -> None:
    """Check that a row is high enough, on the screen, and hit by a tap in its middle."""
    await row.scroll_into_view_if_needed()
    box = await row.bounding_box()
    assert box is not None
    assert box["height"] >= THUMB_PX
    assert page.viewport_size is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= page.viewport_size["width"]
    assert 0 <= box["y"] <= box["y"] + box["height"] <= page.viewport_size["height"]
    await row.tap(trial=True)


async def test_repeated_taps_at_a_side_add_up_and_others_toggle_the_controls(
    open_page: OpenPage, film: str
) -> None:
    page = await open_page(width=360, height=740, has_touch=True, is_mobile=True)
    await open_player(page, f"/videos/{film}?t=12")
    await wait_for(page, "video.currentTime === 12")
    controller = page.locator("media-controller")
    sign = page.locator("[data-player-sign]")
    # Double taps do not zoom the page.
    await expect(controller).to_have_css("touch-action", "manipulation")
    for times, share, position_s, words in (
        (2, 0.1, 2, "−10 s"),  # noqa: RUF001 - a minus
        (3, 0.9, 22, "+20 s"),
        (2, 0.5, 22, "+20 s"),
        (1, 0.1, 22, "+20 s"),
    ):
        await page.evaluate(TAP, [times, share])
        await expect(sign).to_have_text(words)
        await wait_for(page, f"Math.abs(video.currentTime - {position_s}) < 0.2")

    await read(page, "void (video.currentTime = 0)")
    await play_past(page, 0.2)
    await expect(controller).to_have_attribute("userinactive", "")
    await page.evaluate(TAP, [3, 0.1])
    await expect(controller).to_have_attribute("userinactive", "")
    await page.evaluate(TAP, [1, 0.5])
    await expect(controller).not_to_have_attribute("userinactive", "")


async def test_plays_in_a_frame_of_another_site_without_storage(
    page: Page, live_portal: LivePortal, film: str
) -> None:
    embed = f"{live_portal.base_url}/embed/{film}"
    await page.add_init_script(NO_STORAGE)
    async with framing_site() as elsewhere:
        frame = await show_framed(page, elsewhere, f"{embed}?t=5")
        await wait_for(frame, "video.readyState >= 2 && video.currentTime >= 5")
        await frame.locator(".player__start").click()
        await wait_for(frame, "!video.paused && video.currentTime > 5.5")
        link = frame.get_by_role("link", name="A film")
        await expect(link).to_have_attribute("target", "_blank")
        assert str(await link.get_attribute("href")).endswith(f"/videos/{film}")
        assert await page.context.cookies() == []
        await page.context.route(IMPRINT, lambda route: route.fulfill(body="Imprint"))
        entry = frame.get_by_role("menuitem", name="Imprint")
        for choose_entry in (entry.click, lambda: entry.press("Enter")):
            # The menu closes when another window has the focus.
            await frame.locator("media-settings-menu-button").click()
            async with page.expect_popup() as popup:
                await choose_entry()
            assert (await popup.value).url == IMPRINT
            await (await popup.value).close()
        frame = await show_framed(page, elsewhere, f"{embed}?autoplay=1%26muted=1")
        await wait_for(frame, "video.muted && !video.paused && video.currentTime > 0.3")


async def test_plays_in_a_sandboxed_frame(page: Page, live_portal: LivePortal, film: str) -> None:
    """The origin of such a frame is that of no site, so all that it loads is another site's."""
    embed = f"{live_portal.base_url}/embed/{film}"
    async with framing_site() as elsewhere:
        frame = await show_framed(page, elsewhere, embed, sandbox="allow-scripts")
        await frame.locator(".player__start").click()
        await wait_for(frame, "!video.paused && video.currentTime > 0.5")
        await read(frame, "void (video.querySelector('[kind=captions]').track.mode = 'showing')")
        await expect(frame.locator(CAPTIONS)).to_have_text("Good morning.")
