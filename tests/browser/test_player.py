"""The player as people use it: by mouse and by keyboard, with what it remembers of them."""

import io

import av
import pytest
from chromium import OpenPage, axe_findings, photograph, play_past
from player_page import (
    FILM_S,
    choose,
    open_player,
    read,
    wait_for,
)
from playwright.async_api import Page, expect


@pytest.fixture
async def player(page: Page, film: str) -> Page:
    """The film's page, ready to play."""
    await open_player(page, f"/videos/{film}")
    return page


async def test_button_in_the_middle_starts_it_and_controls_hide(player: Page) -> None:
    start = player.locator(".player__start")
    await expect(player.locator("media-controller")).to_have_attribute("mediapaused", "")
    await start.click()
    await wait_for(player, "!video.paused && video.currentTime > 0.5")
    await expect(start).to_be_hidden()
    await player.mouse.move(5, 5)
    await expect(player.locator("media-controller")).to_have_attribute("userinactive", "")
    await expect(player.locator(".player__bar")).to_have_css("opacity", "0")


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


async def test_preview_shows_the_picture_of_that_time(player: Page) -> None:
    loaded = "[...video.textTracks].some((it) => it.kind === 'metadata' && it.cues?.length)"
    await wait_for(player, loaded)
    bar = await player.locator("media-time-range").bounding_box()
    assert bar is not None
    for share, words, channel in ((0.27, "0:06", 0), (0.77, "0:18", 2)):
        await player.mouse.move(bar["x"] + bar["width"] * share, bar["y"] + bar["height"] / 2)
        thumbnail = player.locator("media-preview-thumbnail")
        await expect(thumbnail.locator("img")).to_be_visible()
        await expect(player.locator("media-preview-time-display")).to_have_text(words)
        await wait_for(player, f"{_colour_is_loaded}")
        colour = _middle(await thumbnail.screenshot(animations="disabled"))
        assert max(range(3), key=colour.__getitem__) == channel, (share, colour)


_colour_is_loaded = (
    "document.querySelector('media-time-range').shadowRoot"
    ".querySelector('media-preview-thumbnail').shadowRoot.querySelector('img').complete"
)


def _middle(png: bytes) -> tuple[int, int, int]:
    with av.open(io.BytesIO(png)) as container:
        picture = next(container.decode(video=0)).reformat(format="rgb24")
    plane = picture.planes[0]
    at = picture.height // 2 * plane.line_size + picture.width // 2 * 3
    red, green, blue = bytes(plane)[at : at + 3]
    return red, green, blue


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


@pytest.mark.parametrize("written", ["12", "12s", "0m12s", "0:12", "0:00:12"])
async def test_address_says_where_to_start(page: Page, film: str, written: str) -> None:
    await open_player(page, f"/videos/{film}?t={written}")
    await wait_for(page, "Math.abs(video.currentTime - 12) < 0.1")


async def test_player_fits_a_narrow_page_and_every_control_stays_inside(
    open_page: OpenPage, film: str
) -> None:
    page = await open_page(width=320, height=640, has_touch=True)
    await open_player(page, f"/videos/{film}")
    frame = await page.locator(".player__frame").bounding_box()
    assert frame is not None
    for name in ("mute-button", "time-display", "captions-button", "fullscreen-button"):
        box = await page.locator(f"media-{name}").bounding_box()
        assert box is not None, name
        assert box["x"] >= frame["x"], name
        assert box["x"] + box["width"] <= frame["x"] + frame["width"], name
    await choose(page, "Quality", "360p")
    await wait_for(
        page, "video.videoRenditions.items[video.videoRenditions.selectedIndex].height === 360"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_in_the_open_menus(
    open_page: OpenPage, film: str, scheme: str
) -> None:
    page = await open_page(color_scheme=scheme, reduced_motion="reduce")
    await open_player(page, f"/videos/{film}")
    await play_past(page, 0.2)
    await page.locator("media-settings-menu-button").click()
    await expect(page.locator("media-settings-menu")).to_be_visible()
    assert await axe_findings(page) == []
    await photograph(page, f"player-menu-{scheme}")


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
