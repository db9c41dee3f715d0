"""The upload page in a real browser: what an editor sees, does, and can recover from."""

import base64
import re
import shutil
from pathlib import Path

import pytest
from api_client import rows
from chromium import (
    TRANSCODE_TIMEOUT_MS,
    OpenPage,
    Publish,
    axe_findings,
    photograph,
    play_past,
    record_requests,
)
from front_end import install_tools, run_node
from playwright.async_api import BrowserContext, Page, Route, expect
from running_portal import LivePortal
from upload_page import (
    CREATION,
    SLOW_BPS,
    STORAGE,
    choose,
    choose_category,
    chosen_categories,
    details,
    fill_in,
    is_uploaded,
    line,
    listen,
    open_line,
    open_upload,
    open_video,
    padded,
    press_publish,
    publish_button,
    said,
    slow_down,
    start_upload,
)

# Uploads are broken off, and answers refused.
pytestmark = pytest.mark.complaint("Failed to load resource|status of 4(09|22)")

MOST_INTERACTIONS = 6
# The file, what the page then says of it, and whether it may be published.
FINDINGS = [
    ("plain.mp4", "320 × 180 · 0:01 · 30 fps · H.264 · mono", True),  # noqa: RUF001
    ("silent.mp4", "No audio track. This video is published without sound.", True),
    ("protected.mp4", "This file is copy-protected", False),
]
SMALL_TARGETS = """() => [...document.querySelector("[data-upload-form]")
    .querySelectorAll("button, a, select, [role=option]")]
    .filter((it) => it.getClientRects().length && !it.matches("[data-open]"))
    .filter((it) => it.getBoundingClientRect().height < 44)
    .map((it) => it.outerHTML)"""
MIB = 2**20


@pytest.fixture(scope="session")
def long_upload(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video with padding after it, for more than a second on a slow line."""
    path = tmp_path_factory.mktemp("upload") / "my_holiday  film.mp4"
    return padded(short_video, path, 400_000)


async def test_newcomer_copies_the_link_of_a_first_video_in_six_interactions(
    page: Page, short_video: Path
) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await open_upload(page)
    await expect(details(page)).to_be_hidden()
    await expect(publish_button(page)).to_be_hidden()
    place = line(page, short_video.name)
    interactions = [
        lambda: choose(page, short_video),
        lambda: page.get_by_role("combobox", name="Categories").click(),
        lambda: page.get_by_role("option", name="Music", exact=True).click(),
        lambda: page.get_by_role("button", name="Publish", exact=True).click(),
        lambda: place.get_by_role("button", name="Copy link").click(),
    ]
    assert len(interactions) <= MOST_INTERACTIONS
    for interact in interactions:
        await interact()
    await expect(place.get_by_role("button", name="Copied")).to_be_focused()
    address = await page.evaluate("navigator.clipboard.readText()")

    # The line turns live by itself, and so does its picture; nobody is led anywhere.
    await expect(place).to_contain_text("Ready to watch", timeout=TRANSCODE_TIMEOUT_MS)
    poster = place.locator("img")
    await expect(poster).to_have_attribute("src", re.compile("/poster.jpg"))
    await expect(poster).not_to_have_js_property("naturalWidth", 0)
    await expect(place.get_by_role("link", name="Edit")).to_have_attribute(
        "href", re.compile("/videos/.*/edit$")
    )
    await expect(page).to_have_url("/upload")
    await expect(details(page)).to_be_hidden()
    await expect(page.get_by_text("Upload more")).to_be_visible()
    await page.goto(address)
    await expect(page.get_by_role("heading", level=1)).to_have_text(short_video.stem)


@pytest.mark.slow
async def test_video_is_published_from_details_filled_in_during_upload(
    page: Page, long_upload: Path
) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await expect(page.get_by_label("Title")).to_have_value("my holiday film")
    place = line(page, long_upload.name)
    await expect(place).to_contain_text(re.compile(r"\d%.*/s.*left"))
    await expect(place.get_by_role("progressbar")).to_be_visible()
    await fill_in(page)
    await publish_button(page).click()
    await expect(place).to_contain_text("Will be published when the upload finishes")
    await expect(page.get_by_text("Keep this page open.")).to_be_visible()
    await slow_down(page, 0)
    await open_video(page, "my holiday film")
    await expect(page.get_by_text("By the sea.")).to_be_visible()


@pytest.mark.slow
async def test_status_is_polled_until_video_plays(
    page: Page, publish: Publish, slow_video: Path
) -> None:
    polls = record_requests(page, "/status")
    await page.goto(f"/videos/{await publish(slow_video, 'Played to the end')}")

    await expect(page.locator("video")).to_be_visible(timeout=TRANSCODE_TIMEOUT_MS)
    assert polls
    # What others need of it is on the page without a reload.
    await expect(page.locator("#stream-address")).to_have_value(re.compile("master.m3u8$"))
    await play_past(page, 0.5)

    seen = len(polls)
    # Two whole intervals in which a poll would have come.
    await page.wait_for_timeout(2_200)
    assert len(polls) == seen
    await expect(page.locator("#status[hx-get]")).to_have_count(0)


@pytest.mark.slow
async def test_refused_details_keep_what_was_typed(page: Page, short_video: Path) -> None:
    title = "t" * 201
    await start_upload(page, short_video)
    await fill_in(page, title=title)
    await publish_button(page).click()

    field = page.get_by_label("Title")
    await expect(page.locator("#title-error")).to_contain_text("200 characters")
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_be_focused()
    await expect(field).to_have_value(title)
    await expect(page.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await field.fill("Short enough")
    await expect(page.locator("#title-error")).to_be_empty()
    await press_publish(page)


@pytest.mark.slow
async def test_machine_without_network_uploads_to_a_portal_of_its_own(
    page: Page, short_video: Path
) -> None:
    # Storage is only asked whether it is there, with a request that it refuses.
    no_network = "Object.defineProperty(Navigator.prototype, 'onLine', { value: false })"
    await page.add_init_script(no_network)
    await start_upload(page, short_video)
    await is_uploaded(page)


async def test_leaving_asks_while_something_is_in_flight(page: Page, long_upload: Path) -> None:
    await start_upload(page, long_upload, rate_bps=SLOW_BPS)
    await page.get_by_label("Title").click()  # browsers ask only people who touched the page
    async with page.expect_event("dialog") as asked:
        await page.evaluate("setTimeout(() => location.assign('/'))")
    dialog = await asked.value
    await dialog.dismiss()
    await expect(page).to_have_url("/upload")
    assert dialog.type == "beforeunload"


@pytest.mark.slow
async def test_dropped_file_is_uploaded(page: Page, short_video: Path) -> None:
    await open_upload(page)
    await page.evaluate(
        """(content) => {
            const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], "dropped.mov"));
            for (const type of ["dragover", "drop"]) {
                const event = new DragEvent(type, {
                    bubbles: true, cancelable: true, dataTransfer: transfer,
                });
                document.querySelector("main").dispatchEvent(event);
            }
        }""",
        base64.b64encode(short_video.read_bytes()).decode(),
    )
    await is_uploaded(page, "dropped.mov")


async def test_upload_without_scripts_says_what_is_needed(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto("/upload")
    # Playwright's text search leaves out what is inside <noscript>.
    await expect(page.locator("noscript .notice")).to_be_visible()
    await expect(page.locator("[data-upload-form]")).to_be_hidden()


async def test_details_say_what_the_file_is_and_what_will_happen_to_it(
    page: Page, upload_files: dict[str, Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await choose(page, *(upload_files[name] for name, _, _ in FINDINGS))
    for name, words, is_publishable in FINDINGS:
        form = await open_line(page, name)
        # Read as it looks: the stop after a finding's name comes from the style sheet.
        await expect(form).to_contain_text(words.split(". ")[0].rstrip("."))
        if is_publishable:
            await is_uploaded(page, name)
        else:
            await expect(form.get_by_role("alert")).to_be_visible()
            await expect(line(page, name)).to_contain_text("Can’t be published")  # noqa: RUF001
    publishable = len([name for name, _, is_publishable in FINDINGS if is_publishable])
    await expect(publish_button(page)).to_have_text(f"Publish {publishable} videos")
    heard = " ".join(await said(page, until="No audio track"))
    assert "silent.mp4: No audio track." in heard


@pytest.fixture(scope="session")
def films(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three videos, each seconds long on a slow line."""
    folder = tmp_path_factory.mktemp("films")
    return [padded(short_video, folder / f"film_{n}.mp4", 200_000) for n in (1, 2, 3)]


async def test_one_of_the_list_is_open_and_all_are_published_with_one_press(
    page: Page, films: list[Path]
) -> None:
    await open_upload(page)
    await listen(page)
    await slow_down(page)
    await choose(page, *films[:2])
    await choose(page, films[2])
    # Two at a time.
    await expect(line(page, films[2].name)).to_contain_text("Waiting for another upload")
    await expect(page.locator("[aria-current=true][data-open]")).to_have_text(films[0].name)
    await fill_in(page)

    # Each keeps its own details; a line is opened by pressing it anywhere.
    await line(page, films[1].name).click(position={"x": 30, "y": 30})
    await expect(page.locator("[aria-current=true][data-open]")).to_have_text(films[1].name)
    await expect(page.get_by_label("Title")).to_have_value("film 2")
    await expect(chosen_categories(page)).to_have_count(0)
    await page.get_by_label("Title").fill("The second")
    await line(page, films[0].name).locator("[data-open]").press("Enter")
    await expect(page.get_by_label("Title")).to_have_value("film 1")
    await expect(page.get_by_label("Tags")).to_have_value("sea, sun")

    await page.get_by_role("button", name="Apply to all").click()
    for path, title in zip(films[1:], ["The second", "film 3"], strict=True):
        form = await open_line(page, path.name)
        await expect(form.get_by_label("Title")).to_have_value(title)
        await expect(form.get_by_label("Tags")).to_have_value("sea, sun")
        await expect(chosen_categories(page)).to_have_text(["Music"])

    await slow_down(page, 0)
    await page.get_by_role("button", name="Publish 3 videos").click()
    await expect(page.get_by_text("3 videos are published.")).to_be_visible()
    await expect(page.get_by_role("link", name="Open", exact=True)).to_have_count(3)
    await expect(details(page)).to_be_hidden()
    heard = await said(page, until="“film 3” is published.")
    assert heard[0].startswith("Uploading 2 files.")
    # Start twice, copying, four quarters, the end, the publication and the readiness of three.
    assert len(heard) <= 15
    # Nothing is left that leaving could lose.
    await open_video(page, "The second")


@pytest.mark.slow
async def test_another_file_takes_a_refused_ones_place_and_its_details(
    page: Page, upload_files: dict[str, Path], films: list[Path]
) -> None:
    await start_upload(page, upload_files["protected.mp4"], films[0])
    await fill_in(page, title="Typed for the wrong file")
    alert = page.get_by_role("alert").filter(has_text="This file is copy-protected")
    await expect(alert).to_contain_text("Choose an unprotected original.")
    await expect(page.get_by_role("button", name="Publish", exact=True)).to_be_visible()
    again = details(page).get_by_label("Replace file")
    await again.set_input_files(films[0])
    await expect(page.locator("#again-error")).to_contain_text("in the list already")
    await again.set_input_files(upload_files["plain.mp4"])
    await is_uploaded(page, "plain.mp4")
    await expect(line(page, "protected.mp4")).to_have_count(0)
    await expect(page.get_by_label("Title")).to_have_value("Typed for the wrong file")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await press_publish(page, title="Typed for the wrong file")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 360),
        pytest.param("dark", 1440, marks=pytest.mark.slow),
    ],
)
async def test_list_and_details_suit_everyone_in_any_state(
    open_page: OpenPage,
    upload_files: dict[str, Path],
    films: list[Path],
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    page = await open_page(
        color_scheme=scheme, reduced_motion="reduce", width=width, height=800, has_touch=width < 500
    )
    await open_upload(page)
    await photograph(page, f"upload-empty-{width}-{scheme}")
    names = ("hdr.mp4", "silent.mp4", "sound.mp4", "cut-media.mp4")
    await choose(page, *(upload_files[name] for name in names))
    await is_uploaded(page, "hdr.mp4", "silent.mp4", "cut-media.mp4")
    await expect(line(page, "sound.mp4")).to_contain_text("Can’t be published")  # noqa: RUF001
    await page.get_by_role("combobox", name="Categories").click()
    await page.get_by_role("option", name="Music", exact=True).click()
    assert await axe_findings(page) == []
    if width < 500:
        # A thumb meets nothing that is smaller than 44 px.
        assert await page.evaluate(SMALL_TARGETS) == []
    await publish_button(page).click()
    await expect(line(page, "silent.mp4")).to_contain_text("Some details are missing")
    await slow_down(page, 20_000)
    long_name = shutil.copyfile(films[0], tmp_path / f"{'a_very_long_name' * 12}.mp4")
    await choose(page, Path(long_name), films[1], films[2])
    await line(page, films[1].name).get_by_role("button", name="Pause").click()
    await expect(line(page, films[1].name)).to_contain_text("Paused at")
    await page.evaluate("document.activeElement.blur()")
    assert await axe_findings(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await photograph(page, f"upload-several-{width}-{scheme}")
    await open_line(page, "sound.mp4")
    assert await axe_findings(page) == []


@pytest.fixture(scope="session")
def film(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video that takes seconds on a slow line."""
    path = tmp_path_factory.mktemp("resume") / "harbour.mp4"
    return padded(short_video, path, 1_200_000)


@pytest.fixture(scope="session")
def large_film(short_video: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video large enough to be sent in parts."""
    path = tmp_path_factory.mktemp("resume") / "large harbour.mp4"
    return padded(short_video, path, 66 * MIB)


async def _begin(page: Page, film: Path, *, title: str) -> None:
    """Fill in everything while storage is out of reach.

    The context cuts it off, not the page: a page that is being closed loses its
    routes first, and a retry in that moment would arrive.
    """
    await page.context.route(STORAGE, lambda route: route.abort())
    await start_upload(page, film)
    await expect(line(page, film.name)).to_contain_text("trying again by itself")
    await fill_in(page, title=title)


async def _leave(page: Page, context: BrowserContext) -> Page:
    """Close the tab, as a crash would, and come back in another."""
    await page.close()
    await context.unroute_all()
    again = await context.new_page()
    await open_upload(again)
    return again


async def test_upload_goes_on_in_another_visit_with_what_was_typed(
    page: Page, film: Path, short_video: Path, tmp_path: Path
) -> None:
    await _begin(page, film, title="The harbour")
    page = await _leave(page, page.context)

    place, form = line(page, film.name), details(page)
    await expect(place).to_contain_text("Unfinished")
    await expect(place).to_contain_text("1.")  # MB
    await expect(form).to_contain_text(re.compile(r"Started (today|on \d+ \w+) at"))
    await expect(form.get_by_label("Title")).to_have_value("The harbour")
    await expect(form.get_by_label("Description")).to_have_value("By the sea.\nTwice.")
    await expect(chosen_categories(page)).to_have_text(["Music"])
    await expect(form.get_by_label("Tags")).to_have_value("sea, sun")
    # Nothing can be published before the file is there.
    await expect(publish_button(page)).to_be_hidden()

    again = form.get_by_label("Choose the file again")
    await again.set_input_files(short_video)
    await expect(form).to_contain_text(f"This is “{short_video.name}”")
    await expect(again).to_be_focused()
    changed = tmp_path / film.name
    changed.write_bytes(film.read_bytes()[:-1])
    await again.set_input_files(changed)
    await expect(form).to_contain_text("has the right name but another size")
    changed.write_bytes(film.read_bytes()[:-1] + b"x")
    await again.set_input_files(changed)
    await expect(form).to_contain_text("right name and size, but its content is another")

    await again.set_input_files(film)
    await is_uploaded(page, film.name)
    await press_publish(page, title="The harbour")


@pytest.mark.slow
async def test_large_upload_says_how_far_it_is_and_sends_the_rest(
    page: Page, large_film: Path
) -> None:
    await page.context.route(re.compile("partNumber=[3-9]"), lambda route: route.abort())
    await open_upload(page)
    async with page.expect_request_finished(
        lambda sent: sent.method == "PUT" and "partNumber=2" in sent.url
    ):
        await choose(page, large_film)
    await choose_category(page)
    await expect(line(page, large_film.name)).to_contain_text("%")
    page = await _leave(page, page.context)
    place = line(page, large_film.name)
    await expect(details(page)).to_contain_text("have arrived")
    await expect(place).to_contain_text(re.compile(r"Unfinished at [1-9]\d%"))
    sent = record_requests(page, method="PUT")
    # Chosen like a new file, it is known.
    await choose(page, large_film)
    # It never seems to begin anew.
    await expect(place).not_to_contain_text("Starting")
    await is_uploaded(page, large_film.name)
    await expect(page.locator("[data-line]")).to_have_count(1)
    assert sent
    assert not any("partNumber=2" in url for url in sent)
    await expect(chosen_categories(page)).to_have_text(["Music"])


@pytest.fixture
def own_film(short_video: Path, tmp_path: Path) -> Path:
    """A video of a name that no other test uses."""
    return Path(shutil.copyfile(short_video, tmp_path / f"{tmp_path.name}.mp4"))


async def _publish_without_an_answer(page: Page, path: Path, *, title: str) -> None:
    """The portal gets the request (and does it, if it is right), but its answer is lost."""

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route(CREATION, lose, times=1)
    await start_upload(page, path)
    await fill_in(page, title=title)
    await is_uploaded(page)
    await publish_button(page).click()
    await expect(page.get_by_role("alert")).to_contain_text("be reached")


async def _titles(live_portal: LivePortal, path: Path) -> list[str]:
    """Those of all videos made from a file of this name."""
    query = "SELECT title FROM videos WHERE file_name = %s"
    return [title for (title,) in await rows(live_portal.environ["DATABASE_URL"], query, path.name)]


@pytest.mark.slow
async def test_details_changed_after_a_lost_answer_belong_to_the_same_video(
    page: Page, live_portal: LivePortal, own_film: Path
) -> None:
    await _publish_without_an_answer(page, own_film, title="The habour")
    page = await _leave(page, page.context)
    await expect(page.get_by_text("Ready to publish")).to_be_visible()
    await page.get_by_label("Title").fill("The harbour")
    await press_publish(page, title="The harbour")
    assert await _titles(live_portal, own_film) == ["The harbour"]


@pytest.mark.parametrize("name", ["upload_state", "upload_transfer"])
def test_state_words_parts_and_retries_without_a_browser(name: str) -> None:
    install_tools()
    run_node("--test", str(Path(__file__).with_name(f"{name}.test.mjs")))
