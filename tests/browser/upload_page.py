"""What the tests of the upload page share: files of all kinds, slow lines, what is announced."""

from pathlib import Path

from playwright.async_api import Locator, Page, expect
from running_portal import run_ffmpeg

STORAGE = "**/videos/*.mp4?*"  # the signed address a file is PUT to
CREATION = "**/api/videos?*"  # where a video is published, for who is to see it
SLOW_BPS = 80_000
_PICTURE = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=1")
_SOUND = ("-f", "lavfi", "-i", "sine=duration=1")
_H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
_PQ = "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc"
_HEVC = ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none")
_ENCRYPTION = ("-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "0" * 32)
_KEY_ID = ("-encryption_kid", "0" * 32)
_FIVE_ONE = "[1]pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0[a]"
_MAPS = ("-map", "0:v", "-map", "[a]", "-c:a", "aac")

# By name: what FFmpeg makes of its test picture and tone.
RECIPES: dict[str, tuple[str, ...]] = {
    "plain.mp4": (*_PICTURE, *_SOUND, *_H264),
    "silent.mp4": (*_PICTURE, *_H264),
    "sound.mp4": (*_SOUND, "-c:a", "aac"),
    "hdr.mp4": (*_PICTURE, *_SOUND, "-vf", _PQ, *_HEVC, "-pix_fmt", "yuv420p10le"),
    "surround.mov": (*_PICTURE, *_SOUND, "-filter_complex", _FIVE_ONE, *_MAPS, *_H264),
    "old.mov": (*_PICTURE, *_SOUND, "-c:v", "mjpeg"),
    "protected.mp4": (*_PICTURE, *_H264, *_ENCRYPTION, *_KEY_ID),
    "fragmented.mp4": (*_PICTURE, *_SOUND, *_H264, "-movflags", "frag_keyframe+empty_moov"),
}


def make_files(folder: Path) -> dict[str, Path]:
    """One file for each thing there is to find out about a file, by name."""
    files = {name: run_ffmpeg(folder / name, *recipe) for name, recipe in RECIPES.items()}
    plain = files["plain.mp4"]
    upright = folder / "upright.mp4"
    files["upright.mp4"] = run_ffmpeg(upright, "-display_rotation", "90", "-i", str(plain), *_COPY)
    ahead = run_ffmpeg(folder / "ahead.mp4", "-i", str(plain), *_COPY, "-movflags", "+faststart")
    files["cut.mp4"] = _cut(plain, folder / "cut.mp4")
    files["cut-media.mp4"] = _cut(ahead, folder / "cut-media.mp4")
    files["notes.mp4"] = folder / "notes.mp4"
    files["notes.mp4"].write_text("These are only notes.\n" * 50)
    return files


_COPY = ("-c", "copy")


def _cut(whole: Path, path: Path) -> Path:
    data = whole.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])
    return path


def padded(video: Path, path: Path, size_bytes: int) -> Path:
    """A video with padding after it (a `free` box), for something to watch."""
    padding = bytes(size_bytes)
    box = (len(padding) + 8).to_bytes(4, "big") + b"free" + padding
    path.write_bytes(video.read_bytes() + box)
    return path


async def slow_down(page: Page, rate_bps: int = SLOW_BPS) -> None:
    """Make uploads slow enough to watch; 0 lets them run freely again."""
    session = await page.context.new_cdp_session(page)
    await session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 5,
            "downloadThroughput": -1,
            "uploadThroughput": rate_bps or -1,
        },
    )


async def open_upload(page: Page) -> None:
    """Open the upload page, and wait until its scripts listen."""
    await page.goto("/upload")
    await page.locator("[data-upload-form][data-ready]").wait_for()


async def choose(page: Page, *paths: Path) -> None:
    """Choose files in the drop zone."""
    await page.locator("[data-drop] input").set_input_files(list(paths))


async def start_upload(page: Page, *paths: Path, rate_bps: int = 0) -> None:
    """Open the upload page and choose files there, on a slow line if need be."""
    await open_upload(page)
    if rate_bps:
        await slow_down(page, rate_bps)
    await choose(page, *paths)


def publish_button(page: Page) -> Locator:
    """The one that publishes all that can be published."""
    return page.locator("[data-submit]")


async def press_publish(page: Page, *, title: str = "") -> None:
    """Publish what is uploaded, and wait until the page says so."""
    await publish_button(page).click()
    await is_published(page, title)


async def is_published(page: Page, title: str = "") -> None:
    """A line says that this video is published."""
    published = page.get_by_role("link", name="Open", exact=True)
    if title:
        published = page.get_by_role("listitem").filter(has_text=title).locator(published)
    await expect(published.first).to_be_visible()


async def open_video(page: Page, title: str = "") -> None:
    """From the line of a published video to its page."""
    await is_published(page, title)
    place = page.get_by_role("listitem").filter(has_text=title)
    await place.get_by_role("link", name="Open", exact=True).click()
    await page.wait_for_url("**/videos/*")
    if title:
        await expect(page.get_by_role("heading", level=1)).to_have_text(title)


def line(page: Page, name: str) -> Locator:
    """The line of a file in the list."""
    return page.get_by_role("listitem", name=name, exact=True)


def details(page: Page) -> Locator:
    """The details of the open upload."""
    return page.locator("form[data-details]")


async def open_line(page: Page, name: str) -> Locator:
    """Show the details of a file; answers their form."""
    await line(page, name).locator("[data-open]").click()
    await expect(details(page).get_by_role("heading", name=name, exact=True)).to_be_visible()
    return details(page)


def category_field(place: Page | Locator) -> Locator:
    """The field in which categories are searched for."""
    return place.get_by_role("combobox", name="Categories")


async def choose_category(page: Page, name: str = "Music") -> None:
    """Choose one more category of the open upload, or of the video that is edited."""
    await category_field(page).click()
    await page.get_by_role("option", name=name, exact=True).click()
    await page.keyboard.press("Escape")


def chosen_categories(page: Page) -> Locator:
    """The ones that are chosen, in the order of the table."""
    return page.locator("[data-multi-chips] [data-words]")


async def is_uploaded(page: Page, *names: str) -> None:
    """These files are in storage; without names, the first."""
    for place in [line(page, name) for name in names] or [page.locator("[data-line]").first]:
        await expect(place.get_by_text("Uploaded", exact=True)).to_be_visible()


async def fill_in(page: Page, *, title: str | None = None) -> None:
    """Give all details of the open upload; the title only if it differs from the file's name."""
    place = details(page)
    if title is not None:
        await place.get_by_label("Title").fill(title)
    await place.get_by_label("Description").fill("By the sea.\nTwice.")
    await choose_category(page)
    await place.get_by_label("Tags").fill("sea, sun")


async def listen(page: Page) -> None:
    """Remember from now on what screen readers are told."""
    await page.evaluate(
        """() => {
            window.said = [];
            const region = document.querySelector("[data-upload-live]");
            const note = () => region.textContent && window.said.push(region.textContent);
            new MutationObserver(note).observe(region, {childList: true, characterData: true});
        }"""
    )


async def said(page: Page, *, until: str = "") -> list[str]:
    """What they were told, oldest first; once they were told this."""
    heard: list[str] = await page.evaluate(
        """async (until) => {
            while (!window.said.join(" ").includes(until)) {
                await new Promise((resolve) => setTimeout(resolve, 50));
            }
            return window.said;
        }""",
        until,
    )
    return heard
