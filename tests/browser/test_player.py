"""The player as people use it: by mouse, keys and fingers, on the page and in a frame elsewhere."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from chromium import (
    AWAIT_ANIMATIONS,
    OpenPage,
    Publish,
    play_past,
    record_requests,
)
from framing_site import framing_site
from player_page import FILM_S, NO_STORAGE, choose, open_player, read, wait_for
from playwright.async_api import FloatRect, Frame, Locator, Page, expect
from running_portal import LivePortal, run_ffmpeg

CAPTIONS = "[data-player-captions]"
# As hls.js makes them of CEA-608: two rows at the top on the left, one below on the right.
PLACED = """() => {
    const track = document.querySelector("video").addTextTrack("captions");
    track.mode = "showing";
    const add = (text, placed) => track.addCue(Object.assign(new VTTCue(0, 20, text), placed));
    add("first", { line: 1, align: "left", position: 10 });
    add("second", { line: 2, align: "left", position: 10 });
    add("<i>last</i>", { line: 15, align: "left", position: 60 });
}"""
THUMB_PX = 44
SCREENS = [("/videos/{}", 360, 740), pytest.param("/embed/{}", 360, 203, marks=pytest.mark.slow)]
small_screens = pytest.mark.parametrize(("path", "width", "height"), SCREENS)
# All at once, as far as the page can tell: a busy machine's taps would be too far apart.
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
# A browser that has found a device for each way.
DEVICES = """
window.chrome ??= {};
window.asked = [];
const remote = Object.assign(new EventTarget(), {
    state: "disconnected",
    async watchAvailability(tell) { setTimeout(tell, 50, true); return 1; },
    async cancelWatchAvailability() {},
    async prompt() {
        window.asked.push("cast");
        remote.state = "connected";
        remote.dispatchEvent(new Event("connect"));
    },
});
Object.defineProperty(HTMLMediaElement.prototype, "remote", { get: () => remote });
window.WebKitPlaybackTargetAvailabilityEvent = class extends Event {};
HTMLMediaElement.prototype.webkitShowPlaybackTargetPicker = () => window.asked.push("airplay");
"""
ShowFramed = Callable[[str], Awaitable[Frame]]


@pytest.fixture
async def player(page: Page, film: str) -> Page:
    """The film's page, ready to play."""
    await open_player(page, f"/videos/{film}")
    return page


async def test_poster_stands_until_it_plays_and_little_is_fetched(player: Page) -> None:
    assert (await read(player, "video.poster")).endswith("/poster.jpg?v=0")
    assert await read(player, "video.currentTime") == 0
    await wait_for(player, "video.buffered.length && video.buffered.end(0) >= 4")
    assert await read(player, "video.buffered.end(0)") < FILM_S / 2


async def test_fixed_quality_and_automatic_quality_switch_levels(player: Page) -> None:
    names = player.locator("media-rendition-menu").get_by_role("menuitemradio", include_hidden=True)
    await expect(names).to_contain_text(["Auto", "480p", "360p", "240p"])
    await choose(player, "Quality", "240p")
    await play_past(player, 0)
    await wait_for(player, "video.videoHeight < 250")
    await player.locator("media-settings-menu-button").click()
    await expect(player.locator("[data-menu-of=renditions]")).to_contain_text("240p")
    await player.keyboard.press("Escape")
    await player.evaluate("document.querySelector('video').videoRenditions.selectedIndex = -1")
    await wait_for(player, "video.videoHeight === 480")


@pytest.mark.slow
async def test_chosen_quality_is_used_for_the_next_video_until_it_is_automatic_again(
    page: Page, film: str, ready_video: str
) -> None:
    """The film has 480p, 360p and 240p; the other video nothing above 180p."""
    chosen = "video.videoRenditions.items[video.videoRenditions.selectedIndex]?.name"
    await open_player(page, f"/videos/{film}")
    for kept, used in ((100, 240), (9999, 480), (300, 240)):
        settings = f'{{"quality": {kept}}}'
        await page.evaluate("(it) => localStorage.setItem('portal.player', it)", settings)
        async with page.expect_request(f"**/{used}p/*.m4s*"):
            await open_player(page, f"/videos/{film}")
        assert await read(page, chosen) == used
    await wait_for(page, "video.videoHeight < 250")
    await choose(page, "Quality", "360p")
    await wait_for(page, f"{chosen} === 360")
    await open_player(page, f"/videos/{ready_video}")
    assert await read(page, f"{chosen} === video.videoRenditions.items[0].name")
    await open_player(page, f"/embed/{film}")
    assert await read(page, chosen) == 360
    await page.locator("media-settings-menu-button").click()
    entry = page.locator("media-settings-menu-item").filter(has_text="Quality")
    await entry.click(position={"x": 20, "y": 10})
    await page.get_by_role("menuitemradio", name="Auto").click()
    await open_player(page, f"/videos/{film}")
    assert await read(page, "video.videoRenditions.selectedIndex") == -1


async def switch_captions(page: Page, expected: str) -> None:
    """Press their key, until that is done and remembered, which is a task of its own."""
    await page.keyboard.press("c")
    await wait_for(page, expected)
    await page.evaluate("new Promise((resolve) => setTimeout(resolve))")


async def test_captions_show_in_the_chosen_language_and_again_next_time(player: Page) -> None:
    shown = "[...video.textTracks].filter((track) => track.mode === 'showing')"
    assert await read(player, f"{shown}.length") == 0
    await choose(player, "Captions", "German")
    await play_past(player, 1)
    await wait_for(player, f"{shown}[0]?.activeCues?.[0]?.text === 'Guten Morgen.'")
    await player.reload()
    await wait_for(player, f"{shown}[0]?.language === 'de'")
    await switch_captions(player, f"{shown}.length === 0")
    await player.reload()
    await wait_for(player, "video.textTracks.length === 3")
    assert await read(player, f"{shown}.length") == 0


async def test_audio_track_is_chosen_from_the_menu(player: Page) -> None:
    async with player.expect_response(lambda answer: "/audio-2/" in answer.url):
        await choose(player, "Audio", "German")
    await play_past(player, 0.5)
    assert await read(player, "video.audioTracks.selectedIndex") == 1


@pytest.mark.parametrize("width", [1440, pytest.param(360, marks=pytest.mark.slow)])
async def test_captions_make_way_for_controls_preview_and_menu(
    open_page: OpenPage, film: str, width: int
) -> None:
    page = await open_page(width=width, reduced_motion="no-preference")
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
    if width > 500:
        await page.evaluate(AWAIT_ANIMATIONS)
        beside = await _place(text)
        assert beside["y"] + beside["height"] <= (await _place(preview))["y"]
        assert beside["y"] < alone["y"]
    else:
        # There is no room for both.
        await expect(text).to_be_hidden()
    await page.locator("media-settings-menu-button").click()
    await expect(text).to_be_hidden()
    await page.keyboard.press("Escape")
    await expect(text).to_be_visible()


async def test_captions_stand_where_they_say(page: Page, film: str) -> None:
    await open_player(page, f"/videos/{film}")
    await page.evaluate(PLACED)
    await play_past(page, 0.5)
    captions = page.locator(CAPTIONS)
    first, second, last = [
        await _place(captions.locator("p", has_text=text)) for text in ("first", "second", "last")
    ]
    assert first["x"] == second["x"] < last["x"]
    assert first["y"] < first["y"] + first["height"] <= second["y"] + 1
    assert last["y"] > second["y"] + second["height"] * 5


async def _place(text: Locator) -> FloatRect:
    box = await text.bounding_box()
    assert box is not None
    return box


async def test_keys_work_without_a_click_on_the_player(player: Page) -> None:
    captions = "[...video.textTracks].some((track) => track.mode === 'showing')"
    for key, outcome in (
        ("l", "video.currentTime === 20"),
        ("j", "video.currentTime === 0"),
        ("ArrowRight", "video.currentTime === 15"),
        ("ArrowLeft", "video.currentTime === 5"),
        # It has 10 frames a second.
        (".", "Math.abs(video.currentTime - 10.15) < 0.01"),
        (",", "Math.abs(video.currentTime - 9.95) < 0.01"),
        ("7", "Math.abs(video.currentTime - 0.7 * video.duration) < 0.1"),
        ("m", "video.muted"),
        ("c", captions),
        (">", "video.playbackRate === 1.25"),
        ("<", "video.playbackRate === 1"),
        ("k", "!video.paused"),
        (" ", "video.paused"),
        ("f", "document.fullscreenElement?.localName === 'media-controller'"),
    ):
        await read(player, "void (video.currentTime = 10)")
        await player.keyboard.press(key)
        await wait_for(player, outcome)
    assert await player.evaluate("scrollY") == 0


async def test_keys_say_on_the_picture_what_they_did(player: Page) -> None:
    sign = player.locator("[data-player-sign]")
    await player.locator("media-controller").focus()
    for key, words in (
        ("ArrowLeft", "−5 s"),  # noqa: RUF001 - a minus
        ("l", "+10 s"),
        (">", "1.25×"),  # noqa: RUF001 - a sign of multiplication
        ("ArrowDown", "Volume 95%"),
        ("m", "Muted"),
    ):
        await player.keyboard.press(key)
        await expect(sign).to_have_text(words)
        await expect(sign).to_be_visible()
    await expect(sign).to_be_hidden(timeout=2_000)


async def test_keys_that_scroll_the_page_belong_to_the_player_only_inside_it(player: Page) -> None:
    await player.set_viewport_size({"width": 1280, "height": 300})
    await player.keyboard.press("End")
    await wait_for(player, "scrollY > 0")
    assert await read(player, "video.currentTime") == 0
    await player.locator("media-controller").focus()
    await player.keyboard.press("ArrowDown")
    await wait_for(player, "video.volume === 0.95")
    await player.keyboard.press("End")
    await wait_for(player, "video.currentTime === video.duration")
    await player.keyboard.press("Home")
    await wait_for(player, "video.currentTime === 0")


async def test_keys_are_left_to_fields_and_buttons(player: Page) -> None:
    await player.evaluate(
        "document.querySelector('#main').prepend(document.createElement('input'))"
    )
    field = player.locator("#main > input")
    await field.focus()
    await player.keyboard.type("k m 5")
    await expect(field).to_have_value("k m 5")
    mute = player.locator("media-mute-button")
    await mute.focus()
    await player.keyboard.press(" ")
    await wait_for(player, "video.muted")
    assert await read(player, "video.paused && video.currentTime === 0")


@pytest.fixture
def keys(page: Page) -> Locator:
    """The list of the keys."""
    return page.get_by_role("dialog", name="Keyboard shortcuts")


async def test_menu_leads_to_the_keys_by_mouse_and_by_keyboard(
    page: Page, film: str, keys: Locator
) -> None:
    await open_player(page, f"/videos/{film}")
    button = page.locator("media-settings-menu-button")
    await button.click()
    await page.locator("[data-opens-keys]").click()
    await expect(keys).to_be_visible()
    await keys.get_by_role("button", name="Close").click()
    await expect(keys).to_be_hidden()
    await expect(button).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("media-settings-menu-item:focus")).to_have_count(1)
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await expect(keys).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("media-settings-menu")).to_be_hidden()
    await expect(button).to_be_focused()


@pytest.mark.slow
async def test_switched_off_characters_do_nothing_and_other_keys_work_inside(
    page: Page, film: str, keys: Locator
) -> None:
    await open_player(page, f"/videos/{film}")
    await page.keyboard.press("?")
    letters = keys.get_by_role("switch")
    await expect(letters).to_be_checked()
    await letters.uncheck()
    await page.keyboard.press("Escape")
    await page.reload()
    await wait_for(page, "video.readyState >= 2")
    await _press_characters(page, " ")
    await page.locator("media-controller").focus()
    await _press_characters(page)
    await page.keyboard.press("ArrowRight")
    await wait_for(page, "video.currentTime === 5")
    await page.keyboard.press(" ")
    await wait_for(page, "!video.paused")
    await page.locator("media-settings-menu-button").click()
    await page.locator("[data-opens-keys]").click()
    await expect(letters).not_to_be_checked()
    await letters.check()
    await page.keyboard.press("Escape")
    await page.keyboard.press("m")
    await wait_for(page, "video.muted")


async def _press_characters(page: Page, *others: str) -> None:
    """None of them does anything."""
    state = "[video.currentTime, video.muted, video.paused, video.playbackRate]"
    before = await read(page, state)
    for key in ("k", "j", "l", "m", "c", "f", "5", ">", "?", "K", *others):
        await page.keyboard.press(key)
    assert await read(page, state) == before
    assert await page.evaluate("document.fullscreenElement") is None
    await expect(page.locator("dialog[open]")).to_have_count(0)


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
    await read(player, f"void (video.currentTime = {FILM_S - 1.2})")
    await play_past(player, FILM_S - 0.9)
    await player.reload()
    await wait_for(player, "video.readyState >= 2")
    assert await read(player, "video.currentTime") == 0


async def test_address_says_where_to_start_and_the_time_bar_shows_what_is_there(
    page: Page, film: str
) -> None:
    await open_player(page, f"/videos/{film}?t=0:12")
    await wait_for(page, "Math.abs(video.currentTime - 12) < 0.1")
    loaded = "[...video.textTracks].some((it) => it.kind === 'metadata' && it.cues?.length)"
    await wait_for(page, loaded)
    bar = await _place(page.locator("media-time-range"))
    await page.mouse.move(bar["x"] + bar["width"] * 0.27, bar["y"] + bar["height"] / 2)
    await expect(page.locator("media-preview-thumbnail img")).to_be_visible()
    await expect(page.locator("media-preview-time-display")).to_have_text("0:06")


@small_screens
async def test_every_row_is_for_thumbs_and_can_be_reached(
    open_page: OpenPage, film: str, path: str, width: int, height: int
) -> None:
    page = await _open_small(open_page, path.format(film), width, height)
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


@small_screens
async def test_sheet_is_closed_by_its_button_by_the_page_around_it_and_by_escape(
    open_page: OpenPage, film: str, path: str, width: int, height: int
) -> None:
    page = await _open_small(open_page, path.format(film), width, height)
    menu = page.locator("media-settings-menu")
    close = page.get_by_role("button", name="Close")
    await _open_sheet(page)
    await _expect_reachable(page, close)
    await close.tap()
    await expect(menu).to_be_hidden()
    await expect(close).to_be_hidden()
    await _open_sheet(page)
    await page.touchscreen.tap(width / 2, 8)
    await expect(menu).to_be_hidden()
    await _open_sheet(page)
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(page.locator("media-settings-menu-button")).to_be_focused()
    assert await read(page, "video.paused && video.played.length === 0")


async def _open_small(open_page: OpenPage, address: str, width: int, height: int) -> Page:
    options: dict[str, Any] = {"has_touch": True, "is_mobile": True, "reduced_motion": "reduce"}
    page = await open_page(width=width, height=height, **options)
    await open_player(page, address)
    return page


async def _open_sheet(page: Page) -> None:
    await page.locator("media-settings-menu-button").tap()
    menu = page.locator("media-settings-menu")
    await expect(menu).to_be_visible()
    await expect(menu).to_have_css("position", "fixed")


async def _expect_reachable(page: Page, row: Locator) -> None:
    """It is high enough, and what is touched in its middle once it is scrolled to."""
    await row.scroll_into_view_if_needed()
    box = await row.bounding_box()
    assert box is not None
    assert box["height"] >= THUMB_PX
    assert page.viewport_size is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= page.viewport_size["width"]
    assert 0 <= box["y"] <= box["y"] + box["height"] <= page.viewport_size["height"]
    await row.tap(trial=True)


@pytest.fixture
async def touched(open_page: OpenPage, film: str) -> Page:
    """The film on a phone, at 12 s of its 24."""
    page = await open_page(width=360, height=740, has_touch=True, is_mobile=True)
    await open_player(page, f"/videos/{film}?t=12")
    await wait_for(page, "video.currentTime === 12")
    return page


async def test_taps_at_a_side_add_up_and_others_move_nothing(touched: Page) -> None:
    sign = touched.locator("[data-player-sign]")
    for times, share, position_s, words in (
        (2, 0.1, 2, "−10 s"),  # noqa: RUF001 - a minus
        (3, 0.9, 22, "+20 s"),
    ):
        await touched.evaluate(TAP, [times, share])
        await expect(sign).to_have_text(words)
        await wait_for(touched, f"Math.abs(video.currentTime - {position_s}) < 0.2")
        await expect(sign).to_be_hidden()
    for times, share in ((3, 0.5), (1, 0.1), (1, 0.9)):
        await touched.evaluate(TAP, [times, share])
    assert await read(touched, "video.currentTime") == 22


async def test_one_tap_shows_the_controls_and_two_leave_them_as_they_are(touched: Page) -> None:
    controller = touched.locator("media-controller")
    await play_past(touched, 12.2)
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [2, 0.1])
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [3, 0.1])
    await expect(controller).to_have_attribute("userinactive", "")
    await touched.evaluate(TAP, [1, 0.5])
    await expect(controller).not_to_have_attribute("userinactive", "")


async def test_page_does_not_zoom_and_mice_are_no_fingers(touched: Page) -> None:
    await expect(touched.locator("media-controller")).to_have_css("touch-action", "manipulation")
    box = await touched.locator("video").bounding_box()
    assert box is not None
    await touched.mouse.dblclick(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 3)
    await expect(touched.locator("[data-player-sign]")).to_be_empty()
    assert await read(touched, "video.currentTime") < 20


@pytest.mark.slow
async def test_card_page_and_player_tell_the_same_length(
    page: Page, publish: Publish, tmp_path: Path
) -> None:
    """3.6 s."""
    frames, told = 36, "0:04"
    picture = f"testsrc2=size=320x180:rate=10:duration={frames / 10}"
    file = run_ffmpeg(tmp_path / "clip.mp4", "-f", "lavfi", "-i", picture, "-pix_fmt", "yuv420p")
    video_id = await publish(file, f"Of {frames} frames", until="ready")
    await page.goto(f"/?q=Of+{frames}+frames")
    length = page.locator(".card__duration time")
    await expect(length).to_have_text(told)
    await expect(length).to_have_attribute("datetime", f"PT{int(told[-1])}S")

    await page.goto(f"/videos/{video_id}/edit")
    await expect(page.locator("#facts")).to_contain_text(f"Duration {told}", use_inner_text=True)
    await open_player(page, f"/videos/{video_id}")
    meta = page.locator("meta[property='video:duration']")
    await expect(meta).to_have_attribute("content", told[-1])
    display = page.locator("media-time-display")
    await expect(display).to_have_text(f"0:00 / {told}")
    await expect(display).to_have_attribute("aria-description", "0 seconds of 4 seconds")
    await read(page, "void (video.currentTime = video.duration)")
    await expect(display).to_have_text(f"{told} / {told}")


async def test_browser_with_devices_is_asked_to_play_there_and_nobody_else_is(
    page: Page, film: str, live_portal: LivePortal
) -> None:
    asked = record_requests(page)
    await open_player(page, f"/videos/{film}")
    cast, airplay = (page.locator(f"media-{name}-button") for name in ("cast", "airplay"))
    await expect(cast.or_(airplay).first).to_be_hidden()
    await page.add_init_script(DEVICES)
    await open_player(page, f"/embed/{film}")
    await expect(cast).to_have_attribute("aria-label", "start casting")
    await airplay.click()
    await cast.click()
    assert await page.evaluate("asked") == ["airplay", "cast"]
    await expect(cast).to_have_attribute("aria-label", "stop casting")
    own = [it for it in asked if "X-Amz-" not in it and not it.startswith(("blob:", "data:"))]
    assert all(it.startswith(live_portal.base_url) for it in own), own


@pytest.fixture
async def elsewhere() -> AsyncIterator[str]:
    """A site of another origin, which frames the address it is given."""
    async with framing_site() as origin:
        yield f"{origin}/"


@pytest.fixture
def framed(page: Page, elsewhere: str, live_portal: LivePortal) -> ShowFramed:
    """Shows an address of the portal in a frame of that site."""

    async def framed(path: str) -> Frame:
        await page.goto(f"{elsewhere}?src={live_portal.base_url}{path.replace('&', '%26')}")
        handle = await page.locator("#frame").element_handle()
        assert handle is not None
        frame = await handle.content_frame()
        assert frame is not None
        return frame

    return framed


async def test_plays_in_a_frame_of_another_site_without_storage(
    page: Page, framed: ShowFramed, film: str
) -> None:
    await page.add_init_script(NO_STORAGE)
    frame = await framed(f"/embed/{film}?t=5")
    await wait_for(frame, "video.readyState >= 2 && video.currentTime >= 5")
    await frame.locator(".player__start").click()
    await wait_for(frame, "!video.paused && video.currentTime > 5.5")
    link = frame.get_by_role("link", name="A film")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener")
    assert str(await link.get_attribute("href")).endswith(f"/videos/{film}")
    assert await page.context.cookies() == []
    assert await frame.locator("nav, header, footer").count() == 0


async def test_starts_by_itself_muted_where_the_address_says_so(
    framed: ShowFramed, film: str
) -> None:
    frame = await framed(f"/embed/{film}?autoplay=1&muted=1")
    await wait_for(frame, "video.muted && !video.paused && video.currentTime > 0.3")
