"""The recorder in Chromium, from screens that flash and beep, and from fake devices."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from playwright.async_api import Browser, Page
from record_page import capturing_browser
from recorder_page import Film, bundle_page, decode, decode_base64, fragment_ends, serve

SHARED_TITLE = "Shared tab"
# Chromium's fake camera is a moving figure, and its fake microphone beeps.
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"),
    "--use-fake-device-for-media-stream",
    f"--auto-select-tab-capture-source-by-title={SHARED_TITLE}",
)
SHARE = """title => {
    document.title = title;
    document.body.style.background = "lime";
}"""
KEY_FRAME_INTERVAL_S = 2
# The clock of the sources themselves is only this exact.
IN_STEP_S = 0.04
RECORD = """async ({ seconds, sources, untilHeard = false }) => {
    const opened = await openSources(sources);
    const { recorder, chunks, events, levels } = await record(opened);
    await reach(recorder, seconds);
    while (untilHeard && !levels.some((level) => level > 0.1)) await wait(20);
    const { duration_s } = await recorder.stop();
    return { duration_s, events, levels, data: await bytesOf(chunks) };
}"""


@pytest.fixture(scope="module")
def recorder_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a page with the recorder."""
    folder = tmp_path_factory.mktemp("recorder")
    bundle_page(folder)
    with serve(folder) as url:
        yield url


@pytest.fixture(scope="module")
async def capturing() -> AsyncIterator[Browser]:
    """Chromium with fake devices, which it may use."""
    async with capturing_browser(ARGUMENTS) as browser:
        yield browser


@asynccontextmanager
async def open_recorder(browser: Browser, url: str) -> AsyncIterator[Page]:
    """Open a page with the recorder, which must not throw."""
    context = await browser.new_context(permissions=["camera", "microphone"])
    page = await context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto(url)
    await page.wait_for_function("() => window.record")
    yield page
    await context.close()
    assert errors == []


@pytest.fixture
async def page(capturing: Browser, recorder_url: str) -> AsyncIterator[Page]:
    """Page with the recorder."""
    async with open_recorder(capturing, recorder_url) as page:
        yield page


@pytest.fixture(scope="module")
async def flashing(capturing: Browser, recorder_url: str) -> dict[str, Any]:
    """Recording of a screen that flashes and beeps, and what the recorder said."""
    async with open_recorder(capturing, recorder_url) as page:
        sources = {"seconds": 6.5, "sources": {"screen": {}}}
        result: dict[str, Any] = await page.evaluate(RECORD, sources)
    return result


async def record(
    page: Page, seconds: float, *, until_heard: bool = False, **sources: Any
) -> tuple[Film, dict[str, Any]]:
    """Record so long at least, and until there is sound if asked for.

    Returns the film, and the recorder's duration, events and levels.
    """
    result = await page.evaluate(
        RECORD, {"seconds": seconds, "sources": sources, "untilHeard": until_heard}
    )
    film = decode(decode_base64(result["data"]))
    return film, result


def assert_in_step(film: Film, count: int, *, from_s: float = 0) -> None:
    """Check that flashes and beeps are in step. A busy computer draws a flash late, never early."""
    flashes_s = [at_s for at_s in film.flashes_s if at_s >= from_s]
    assert len(flashes_s) >= count, flashes_s
    differences_s = [
        min((beep_s - flash_s for beep_s in film.beeps_s), key=abs) for flash_s in flashes_s
    ]
    assert abs(max(differences_s)) <= IN_STEP_S, differences_s


def longest_gap_s(film: Film) -> float:
    return max(after.at_s - before.at_s for before, after in pairwise(film.pictures))


async def test_film_has_key_frames_and_sound_in_step(flashing: dict[str, Any]) -> None:
    film = decode(decode_base64(flashing["data"]))
    assert_in_step(film, count=5)
    keys_s = [picture.at_s for picture in film.pictures if picture.is_key]
    assert film.pictures[0].at_s == 0
    assert max(b - a for a, b in pairwise(keys_s)) <= KEY_FRAME_INTERVAL_S + 0.2
    assert film.rate == 48_000
    sound_s = film.sound.shape[1] / film.rate
    # The picture lasts a tenth of a second more than until its last frame.
    assert sound_s <= film.pictures[-1].at_s + 0.1
    assert abs(film.pictures[-1].at_s - flashing["duration_s"]) < 0.05
    assert abs(sound_s - flashing["duration_s"]) < 0.15
    # The beginning does not stand still while encoders start.
    assert longest_gap_s(film) < 0.4
    assert max(flashing["levels"]) > 0.4
    assert flashing["events"] == []


async def test_each_fragment_ends_a_film_that_plays(flashing: dict[str, Any]) -> None:
    data = decode_base64(flashing["data"])
    ends = fragment_ends(data)
    assert len(ends) >= 3
    last_s = 0.0
    for end in ends:
        film = decode(data[:end])
        assert last_s < film.pictures[-1].at_s <= last_s + KEY_FRAME_INTERVAL_S + 0.3
        last_s = film.pictures[-1].at_s
        assert abs(film.sound.shape[1] / film.rate - last_s) < 0.3


@pytest.mark.slow
async def test_pause_leaves_no_gap(page: Page) -> None:
    result = await page.evaluate(
        """async () => {
            const screen = await flashingScreen();
            const { recorder, chunks } = await record({ screen });
            for (const until_s of [2.2, 4.4]) {
                await reach(recorder, until_s);
                recorder.pause();
                const paused_s = recorder.duration_s;
                await wait(1700);
                if (recorder.duration_s !== paused_s) throw new Error("The time went on.");
                recorder.resume();
            }
            await reach(recorder, 7);
            const { duration_s } = await recorder.stop();
            return { duration_s, data: await bytesOf(chunks) };
        }"""
    )
    film = decode(decode_base64(result["data"]))
    assert abs(result["duration_s"] - 7) < 0.5
    assert abs(film.pictures[-1].at_s - result["duration_s"]) < 0.05
    assert abs(film.sound.shape[1] / film.rate - result["duration_s"]) < 0.15
    assert longest_gap_s(film) < 0.4
    assert_in_step(film, count=4)


async def test_camera_is_a_bubble_until_the_screen_ends(page: Page) -> None:
    result = await page.evaluate(
        """async () => {
            const red = { isStill: true, withSound: false, colour: "#f00" };
            const screen = await flashingScreen(red);
            const camera = await openCamera();
            const { recorder, chunks } = await record({ screen, camera });
            recorder.bubble = { x: 0.2, y: 0.3, size: 0.4, isHidden: false };
            await reach(recorder, 1);
            recorder.bubble.x = 0.8;
            await reach(recorder, 2);
            recorder.bubble.isHidden = true;
            await reach(recorder, 3);
            const settings = recorder.preview.getVideoTracks()[0].getSettings();
            screen.getVideoTracks()[0].stop();
            screen.getVideoTracks()[0].dispatchEvent(new Event("ended"));
            await reach(recorder, 4);
            recorder.bubble.isHidden = false;
            await reach(recorder, 5);
            await recorder.stop();
            return { data: await bytesOf(chunks), settings };
        }"""
    )
    film = decode(decode_base64(result["data"]))
    height, width, _ = film.pictures[0].pixels.shape
    assert result["settings"]["width"] == width

    def is_red(at_s: float, x: float, y: float) -> bool:
        picture = min(film.pictures, key=lambda picture: abs(picture.at_s - at_s))
        red, green, blue = (int(v) for v in picture.pixels[int(y * height), int(x * width)])
        return red > 200 and green < 60 and blue < 60

    states = [[is_red(at_s, x, 0.3) for x in (0.2, 0.8)] for at_s in (0.7, 1.8, 2.8, 3.8)]
    assert states == [[False, True], [True, False], [True, True], [True, True]]
    # The camera takes the place of a screen that has ended, once it isn't hidden.
    assert [is_red(4.8, x, 0.3) for x in (0.2, 0.8)] == [False, False]
    # Outside of the circle, but inside of the square around it.
    assert is_red(0.7, 0.2 - 0.19 * height / width, 0.3 - 0.19)
    assert film.sound.shape[1] == 0


@pytest.mark.slow
async def test_still_screen_without_sound_goes_on(page: Page) -> None:
    screen = {"isStill": True, "withSound": False}
    film, result = await record(page, 5, screen=screen)
    assert film.sound.shape[1] == 0
    assert longest_gap_s(film) <= 1
    keys_s = [picture.at_s for picture in film.pictures if picture.is_key]
    assert [round(at_s) for at_s in keys_s] == [0, 2, 4]
    assert abs(film.pictures[-1].at_s - result["duration_s"]) < 0.05


@pytest.mark.slow
async def test_window_that_becomes_narrower_gets_bars(page: Page) -> None:
    result = await page.evaluate(
        """async () => {
            const screen = await flashingScreen({ isStill: true, colour: "#f00" });
            const { recorder, chunks } = await record({ screen });
            await reach(recorder, 1);
            screen.resize(360);
            await reach(recorder, 3);
            await recorder.stop();
            return await bytesOf(chunks);
        }"""
    )
    film = decode(decode_base64(result))
    first, last = (
        picture.pixels.mean(axis=(0,)) for picture in film.pictures[:: len(film.pictures) - 1]
    )
    assert first.shape == last.shape == (640, 3)
    assert first[20, 0] > 200
    assert [last[x, 0] > 200 for x in (20, 320, 620)] == [False, True, False]


@pytest.mark.slow
async def test_tab_with_its_sound_camera_and_microphone_are_one_film(page: Page) -> None:
    shared = await page.context.new_page()
    await shared.goto(page.url)
    await shared.evaluate(SHARE, SHARED_TITLE)
    # A busy computer takes seconds to start a device of sound.
    film, result = await record(page, 2, until_heard=True, display={}, camera={}, microphone={})
    red, green, blue = film.pictures[-1].pixels[20, 20]
    assert (red < 60, green > 200, blue < 60) == (True, True, True)
    # The camera's bubble is at the lower right.
    height, width, _ = film.pictures[-1].pixels.shape
    bubble = film.pictures[-1].pixels[int(0.82 * height), int(0.88 * width)]
    assert abs(bubble.astype(int) - film.pictures[-1].pixels[20, 20]).max() > 20
    # Chromium's fake device also makes the sound of a shared tab.
    assert abs(film.sound).max() > 0.1
    assert film.rate == 48_000
    assert max(result["levels"]) > 0
    assert result["events"] == []


async def test_troubles_are_told_and_the_recording_goes_on(page: Page) -> None:
    result = await page.evaluate(
        """async () => {
            const screen = await flashingScreen({ isStill: true, colour: "#000" });
            const [microphone] = await Promise.all([openMicrophone()]);
            for (const track of microphone.getTracks()) track.enabled = false;
            const { recorder, chunks, events } = await record({ screen, microphone });
            const told = async (kind, isOver) => {
                while (!events.some((event) => event.kind === kind && event.isOver === isOver)) {
                    await wait(50);
                }
            };
            await Promise.all([told("silence", false), told("black", false)]);
            for (const track of microphone.getTracks()) track.enabled = true;
            await told("silence", true);
            microphone.getTracks()[0].dispatchEvent(new Event("ended"));
            await told("unplugged", false);
            recorder.replaceMicrophone(await openMicrophone());
            await told("unplugged", true);
            screen.getVideoTracks()[0].dispatchEvent(new Event("ended"));
            await told("screen_ended", false);
            const ended_s = recorder.duration_s;
            await reach(recorder, ended_s + 2);
            const { duration_s } = await recorder.stop();
            return { duration_s, ended_s, events, data: await bytesOf(chunks) };
        }"""
    )
    film = decode(decode_base64(result["data"]))
    assert abs(film.pictures[-1].at_s - result["duration_s"]) < 0.05
    assert [beep for beep in film.beeps_s if beep > result["ended_s"]]
    silence = next(event for event in result["events"] if event["kind"] == "silence")
    assert silence["since_s"] < 1


@pytest.mark.slow
async def test_sleep_of_the_computer_is_left_out(page: Page) -> None:
    # The clock of the page goes on during the sleep, those of the tracks don't.
    result = await page.evaluate(
        """async () => {
            const screen = await flashingScreen();
            const { recorder, chunks, events } = await record({ screen });
            await reach(recorder, 3);
            const now = performance.now.bind(performance);
            performance.now = () => now() + 3_600_000;
            await reach(recorder, 9);
            const { duration_s } = await recorder.stop();
            return { duration_s, events, data: await bytesOf(chunks) };
        }"""
    )
    film = decode(decode_base64(result["data"]))
    assert abs(result["duration_s"] - 9) < 0.5
    assert abs(film.pictures[-1].at_s - result["duration_s"]) < 0.05
    assert abs(film.sound.shape[1] / film.rate - result["duration_s"]) < 0.15
    # A busy page takes seconds to compare the clocks of the tracks with its own anew.
    assert_in_step(film, count=3, from_s=5)
    assert result["events"] == []


@pytest.mark.slow
async def test_slow_storage_holds_back_and_failing_storage_ends_the_film(page: Page) -> None:
    result = await page.evaluate(
        """async () => {
            const screen = await flashingScreen();
            let isSlow = true;
            const sink = async (chunks) => {
                if (chunks.length === 3 && isSlow) {
                    isSlow = false;
                    await wait(3000);
                }
                if (chunks.length === 6) throw new Error("The disk is full.");
            };
            const { recorder, chunks, events } = await record({ screen, sink });
            while (!events.some(({ type }) => type === "failed")) await wait(50);
            await recorder.stop();
            return { events, data: await bytesOf(chunks.slice(0, 5)) };
        }"""
    )
    assert result["events"] == [{"type": "failed", "message": "The disk is full."}]
    film = decode(decode_base64(result["data"]))
    # Sound waits, but frames are left out.
    assert film.sound.shape[1] / film.rate > 3
    assert_in_step(film, count=4)
