"""Captions from an editor's file to the viewer's player, by pointer and by keyboard."""

import re
from pathlib import Path

import pytest
from chromium import OpenPage, Publish, play_past, publish_file, suits_everyone
from front_end import install_tools
from player_page import read, wait_for
from playwright.async_api import Page, expect
from running_portal import final_status, fresh_portal, until
from speech import SENTENCE, Speech

# Browsers log refused requests as errors.
pytestmark = pytest.mark.complaint("status of (412|422)")

CAPTIONS = "[data-player-captions]"
SRT = """1
00:00:00,200 --> 00:00:01,500
Good mroning.

2
00:00:02,000 --> 00:00:05,000
Noon & night.
"""
STATE = "[data-editor-state]"


async def test_captions_and_chapters_are_uploaded_edited_and_watched(
    page: Page, publish: Publish, short_video: Path, tmp_path: Path
) -> None:
    video = await publish(short_video, "A day", until="ready")
    viewer = await page.context.new_page()
    await viewer.goto(f"/videos/{video}")
    await play_past(viewer, 0.1)

    await page.goto(f"/videos/{video}/edit")
    await page.locator("summary", has_text="Add captions").click()
    form = page.get_by_role("form", name="New captions")
    file = tmp_path / "captions.srt"
    file.write_text("nothing of the kind", encoding="utf-8")
    await form.get_by_label("Language").fill("english")
    await form.get_by_label("File").set_input_files(file)
    await form.get_by_role("button", name="Add captions").click()
    await expect(form.get_by_text("this file is none of WebVTT")).to_be_visible()
    file.write_bytes(SRT.replace("Noon", "À midi").replace("00:00:0", "01:00:0").encode("cp1252"))
    await form.get_by_label("File").set_input_files(file)
    await form.get_by_role("button", name="Add captions").click()
    await expect(page.get_by_text("À midi & night.")).to_be_visible()
    await expect(page.get_by_role("heading", name="Check the captions")).to_be_focused()
    await suits_everyone(page, "captions to check", part="#captions-panel")
    await page.get_by_role("link", name="Cancel").click()
    await page.locator("summary", has_text="Add captions").click()
    file.write_text(SRT, encoding="utf-8")
    await form.get_by_label("Language").fill("english")
    await form.get_by_label("File").set_input_files(file)
    await form.get_by_label("Show them by default").check()
    await form.get_by_role("button", name="Add captions").click()
    await expect(page.get_by_role("link", name="Edit English")).to_be_visible()
    await suits_everyone(page, "workshop with captions", part="#captions-panel")
    await page.get_by_role("link", name="Edit English").click()

    first = page.get_by_label("cue 1: text")
    await expect(first).to_have_value("Good mroning.")
    await first.fill("Good morning.")
    await expect(page.locator(STATE)).to_have_text("2 cues · not saved yet")
    await page.keyboard.press("Control+s")
    await expect(page.locator(STATE)).to_have_text("2 cues · saved")
    await expect(page.get_by_text("Saved.", exact=True).last).to_be_visible()
    await suits_everyone(page, "caption editor")

    # A page that was already open shows the captions, too.
    await viewer.evaluate("document.body.dispatchEvent(new Event('captions-changed'))")
    await read(viewer, "video.currentTime = 0.3")
    await expect(viewer.locator(CAPTIONS)).to_have_text("Good morning.")
    await viewer.get_by_text("Transcript", exact=True).click()
    transcript = viewer.get_by_role("region", name="Transcript")
    cues = transcript.get_by_role("link")
    await expect(cues).to_have_text(["0:00 Good morning.", "0:02 Noon & night."])
    await expect(cues.first).to_have_attribute("aria-current", "true")
    await viewer.get_by_label("Search in the transcript").fill("NIGHT")
    await expect(transcript.get_by_role("status")).to_have_text("1 place")
    await read(viewer, "video.pause()")
    await transcript.get_by_role("link", name="Noon & night.").press("Enter")
    await wait_for(viewer, "video.currentTime >= 2")

    # Chromium may keep the first byte alone of a segment whose page is left while it comes.
    await page.goto(f"/videos/{video}/edit", wait_until="networkidle")
    await page.get_by_role("link", name="Add chapters").click()
    await page.wait_for_load_state("networkidle")
    await expect(page.get_by_text("No chapters yet.")).to_be_visible()
    for at_s, title in ((0, "Dawn"), (1, "Noon & after")):
        await read(page, f"video.currentTime = {at_s}")
        await wait_for(page, "!video.seeking")
        await page.get_by_role("button", name="Add").press("Enter")
        await page.keyboard.type(title)
    await suits_everyone(page, "chapter editor")
    await page.keyboard.press("Control+s")
    await expect(page.locator(STATE)).to_have_text("2 chapters · saved")
    await viewer.reload()
    chapters = viewer.get_by_role("navigation", name="Chapters").get_by_role("link")
    await expect(chapters).to_have_text(["0:00 Dawn", "0:01 Noon & after"])
    await wait_for(viewer, "video.readyState >= 2")
    bar = "document.querySelector('media-time-range')"
    await wait_for(viewer, f"{bar}.mediaChaptersCues?.[0]?.text === 'Dawn'", timeout_s=20)
    await viewer.get_by_text("Transcript", exact=True).click()
    rows = viewer.locator("[data-transcript-list] > li")
    await expect(rows).to_contain_text(["Dawn", "Good morning", "Noon & after", "Noon & night"])
    await suits_everyone(viewer, "transcript with chapters")
    await chapters.last.press("Enter")
    await wait_for(viewer, "video.currentTime >= 1")


@pytest.mark.slow
@pytest.mark.soak
async def test_captions_are_generated_while_the_page_is_open(
    page: Page, services: dict[str, str], speech: Speech, tmp_path: Path
) -> None:
    settings = {"CAPTIONS_MODEL": str(speech.model), "WORK_DIR": str(tmp_path)}
    spoken = speech.video(tmp_path / "spoken.mp4", {1: SENTENCE}, seconds=6)
    spoken_text = re.compile("good morning everyone", re.IGNORECASE)
    async with fresh_portal(services, worker=True, **settings) as portal:
        video_id = await publish_file(portal.base_url, spoken, "Spoken")
        assert await final_status(portal.base_url, video_id) == "ready"
        viewer = await page.context.new_page()
        await viewer.goto(f"{portal.base_url}/videos/{video_id}")

        await page.goto(f"{portal.base_url}/videos/{video_id}/edit")
        panel = page.get_by_role("region", name="Captions and chapters")
        await panel.get_by_text("Generate captions automatically").click()
        form = panel.get_by_role("form", name="Automatic captions")
        await form.get_by_label("Language spoken").fill("gibberish")
        await form.get_by_role("button", name="Generate captions").click()
        await expect(form.get_by_text("There is no such language.")).to_be_visible()
        await suits_everyone(page, "captions by a machine")
        await form.get_by_label("Language spoken").fill("")
        await form.get_by_role("button", name="Generate captions").click()
        await expect(panel.get_by_role("progressbar")).to_be_visible()
        # The editor's input survives the updates of the panel.
        await panel.locator("summary", has_text="Add captions").click()
        await panel.get_by_label("Language", exact=True).fill("Greek")
        await expect(panel.get_by_text("generated automatically")).to_be_visible()
        await expect(panel.get_by_label("Language", exact=True)).to_have_value("Greek")
        await panel.get_by_role("link", name="Edit English").click()
        await expect(page.get_by_label("cue 1: text")).to_have_value(spoken_text)

        await viewer.evaluate("document.body.dispatchEvent(new Event('captions-changed'))")
        await viewer.get_by_text("Transcript", exact=True).click()
        await expect(viewer.get_by_role("link", name=spoken_text)).to_be_visible()


async def test_cues_are_edited_by_keyboard_and_undone(page: Page, ready_video: str) -> None:
    """Without a browser, `cues.test.mjs` tests what each of these does to the cues."""
    video = ready_video
    await page.goto(f"/videos/{video}/edit")
    await page.locator("summary", has_text="Add captions").click()
    form = page.get_by_role("form", name="New captions")
    await form.get_by_label("Language").fill("de")
    await form.get_by_role("button", name="Add captions").click()
    await expect(page.get_by_text("No captions yet.")).to_be_visible()

    await read(page, "video.currentTime = 1.25")
    await page.get_by_role("button", name="Add").press("Enter")
    await page.keyboard.type("Guten Morgen, guten Abend.")
    assert await times_of(page) == [("0:01.250", "0:03.250")]
    for _ in range(len(" guten Abend.")):
        await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("Control+k")
    assert await texts_of(page) == ["Guten Morgen,", "guten Abend."]
    assert (await times_of(page))[1][1] == "0:03.250"
    await page.keyboard.press("Alt+ArrowDown")
    await expect(page.get_by_label("cue 2: text")).to_be_focused()
    await page.keyboard.press("Alt+ArrowUp")
    await page.keyboard.press("Control+j")
    assert await texts_of(page) == ["Guten Morgen,\nguten Abend."]
    await page.keyboard.press("Control+z")
    assert await texts_of(page) == ["Guten Morgen,", "guten Abend."]

    await page.get_by_label("cue 1: ends at").fill("0:00")
    await page.keyboard.press("Tab")
    reason = page.locator("[data-cue-fault]").first
    await expect(reason).to_have_text("End time must be after start time.")
    await suits_everyone(page, "caption editor with a fault")
    await page.get_by_role("button", name="Save").click()
    trouble = page.locator("[data-message]")
    await expect(trouble).to_have_text("Cue 1: End time must be after start time.")
    await page.keyboard.press("Control+z")
    await expect(trouble).to_be_empty()
    await page.get_by_label("cue 2: ends at").fill("9:00:00")
    await page.get_by_label("cue 2: starts at").fill("8:00:00")
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Begins after the end of the video.")).to_be_visible()
    await page.keyboard.press("Control+z")
    await page.keyboard.press("Control+z")
    await page.get_by_text("Shift all, find and replace").click()
    shift = page.get_by_role("button", name="Shift all cues")
    await shift.click()
    await expect(trouble).to_contain_text("Enter a number of seconds")
    await page.get_by_label("Seconds", exact=True).fill("-5")
    await shift.click()
    await expect(trouble).to_contain_text("Shifted by -1.25 s only: the first cue")
    await page.keyboard.press("Control+z")
    await page.get_by_label("Find").fill("GUTEN")
    await page.get_by_label("Replace with").fill("Schönen")
    await page.get_by_role("button", name="Replace all").click()
    assert await texts_of(page) == ["Schönen Morgen,", "Schönen Abend."]
    await expect(trouble).to_have_text("Replaced in 2 cues.")
    # A click on a cue's text seeks to it, and a new cue is added after it.
    await read(page, "video.currentTime = 0")
    await page.get_by_label("cue 1: text").click()
    await wait_for(page, "video.currentTime === 1.25", timeout_s=10)
    end = (await times_of(page))[0][1]
    await page.get_by_role("button", name="Add").click()
    assert (await times_of(page))[1][0] == end
    await page.keyboard.press("Control+Shift+Backspace")
    await page.get_by_label("cue 2: text").focus()
    await page.keyboard.press("Control+Shift+Backspace")
    await page.keyboard.press("Control+s")
    await expect(page.locator(STATE)).to_have_text("1 cue · saved")


async def save_cue(editor: Page, number: int, text: str, *, state: str) -> None:
    """Type the text of a cue, and save it by keyboard."""
    await editor.get_by_label(f"cue {number}: text").fill(text)
    await editor.keyboard.press("Control+s")
    await expect(editor.locator(STATE)).to_have_text(state)


async def test_changes_of_two_editors_are_merged_or_reported(page: Page, ready_video: str) -> None:
    answer = await page.request.post(
        f"/api/videos/{ready_video}/captions?language=fr",
        data=SRT,
        headers={"Content-Type": "application/x-subrip"},
    )
    assert answer.status == 201
    other = await page.context.new_page()
    for each in (page, other):
        await each.goto(f"/videos/{ready_video}/captions/fr/edit")
        await expect(each.get_by_label("cue 2: text")).to_have_value("Noon & night.")
    await save_cue(other, 1, "Theirs.", state="2 cues · saved")
    await save_cue(page, 2, "Mine.", state="2 cues · saved")
    assert await texts_of(page) == ["Theirs.", "Mine."]

    await other.get_by_label("cue 2: text").fill("Also theirs.")
    await other.keyboard.press("Control+s")
    await expect(other.locator("[data-message]")).to_contain_text("0:02.000 “Mine.”")
    assert await texts_of(other) == ["Theirs.", "Also theirs."]
    await other.keyboard.press("Control+s")
    await expect(other.locator(STATE)).to_have_text("2 cues · saved")

    # A cue may have another number after a merge. Further text is typed into the same cue.
    await page.reload()
    await expect(page.get_by_label("cue 2: text")).to_have_value("Also theirs.")
    await other.get_by_label("cue 1: text").click()
    await other.get_by_role("button", name="Add").click()
    await save_cue(other, 2, "New.", state="3 cues · saved")
    await save_cue(page, 2, "Mine.", state="3 cues · saved")
    await expect(page.get_by_label("cue 3: text")).to_be_focused()
    await page.keyboard.type("!")
    first_text, second_text, third_text = await texts_of(page)
    assert (first_text, second_text) == ("Theirs.", "New.")
    assert sorted(third_text) == sorted("Mine.!")


CUES_BY_HLS = """async (address) => {
    const video = document.createElement("video");
    const hls = new Hls({ enableWorker: false });
    const has = (name) => new Promise((resolve) => hls.once(name, (_, data) => resolve(data)));
    hls.attachMedia(video);
    hls.loadSource(address);
    await has(Hls.Events.MANIFEST_PARSED);
    const [{ name, lang }] = hls.subtitleTracks;
    hls.subtitleDisplay = true;
    hls.subtitleTrack = 0;
    const { details } = await has(Hls.Events.SUBTITLE_TRACK_LOADED);
    for (const _ of details.fragments) {
        // Captions that arrive before their part of the film are read again.
        while (!(await has(Hls.Events.SUBTITLE_FRAG_PROCESSED)).success) {}
    }
    const cues = [...video.textTracks].flatMap((track) => [...(track.cues ?? [])]);
    return [name, lang, cues.map(({ startTime, endTime, text }) => [startTime, endTime, text])];
}"""


def variant_folders(master: str) -> set[str]:
    """Return the folders of attempts in the addresses of a master playlist's variants."""
    return set(re.findall(r"^(\d+)/", master, re.MULTILINE))


@pytest.mark.slow
async def test_other_players_find_captions_to_the_millisecond(
    open_page: OpenPage, publish: Publish, short_video: Path
) -> None:
    """A plain hls.js reads them from the master playlist."""
    page = await open_page(bypass_csp=True)
    video = await publish(short_video, "Elsewhere", until="ready")
    kind = {"Content-Type": "application/x-subrip"}
    captions = SRT
    for written, exact in (("00,200", "00,217"), ("01,500", "01,503"), ("02,000", "01,708")):
        captions = captions.replace(written, exact)
    path = f"/api/videos/{video}/captions?language=pt-BR"
    assert (await page.request.post(path, data=captions, headers=kind)).status == 201
    record = await (await page.request.get(f"/api/videos/{video}?include=details")).json()
    master = record["playbackUrl"]

    async def is_named() -> bool:
        return "TYPE=SUBTITLES" in await (await page.request.get(master)).text()

    await until(is_named, timeout_s=30)
    await page.goto("/")
    hls = install_tools() / "hls.js" / "dist" / "hls.min.js"
    await page.add_script_tag(content=hls.read_text(encoding="utf-8"))
    name, language, cues = await page.evaluate(CUES_BY_HLS, master)
    assert (name, language) == ("Portuguese (Brazil)", "pt-BR")
    assert [text for *_, text in cues] == ["Good mroning.", "Noon &amp; night."]
    times = [time for start, end, _ in cues for time in (start, end)]
    # The last cue is longer than the film, and ends with it.
    film_s = record["details"]["durationSeconds"]
    assert times == pytest.approx([0.217, 1.503, 1.708, film_s], abs=0.001)

    # Segments of a cut film have the times of the whole one.
    keep = [{"startSeconds": 0.3, "endSeconds": 0.9}, {"startSeconds": 1.3, "endSeconds": 9}]

    async def is_accepted() -> bool:
        answer = await page.request.put(f"/api/videos/{video}/cuts", data={"keep": keep})
        return answer.status == 202

    whole = variant_folders(await (await page.request.get(master)).text())
    await until(is_accepted, timeout_s=30)

    async def is_cut() -> bool:
        text = await (await page.request.get(master)).text()
        return variant_folders(text).isdisjoint(whole) and "TYPE=SUBTITLES" in text

    await until(is_cut, timeout_s=30)
    # The browser may have the former playlist for some seconds.
    _, _, cues = await page.evaluate(CUES_BY_HLS, f"{master}?is=cut")
    times = [time for start, end, _ in cues for time in (start, end)]
    expected = [0, 0.6, 0.6, 1.503 - 0.7, 1.708 - 0.7, film_s - 0.7]
    assert times == pytest.approx(expected, abs=0.002)


@pytest.mark.slow
async def test_of_ten_thousand_cues_a_few_have_rows(page: Page, ready_video: str) -> None:
    times = [f"{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}" for at in range(10_000)]
    cues = (f"{time}.000 --> {time}.900\nText at {time}.\n" for time in times)
    answer = await page.request.put(
        f"/api/videos/{ready_video}/captions/pl",
        data="WEBVTT\n\n" + "\n".join(cues),
        headers={"Content-Type": "text/vtt"},
    )
    assert answer.status == 201
    await page.goto(f"/videos/{ready_video}/captions/pl/edit")
    await expect(page.locator(STATE)).to_have_text("10,000 cues · saved")
    assert await page.locator("[data-index]").count() < 60
    await page.locator("[data-cues]").evaluate("box => { box.scrollTop = box.scrollHeight / 2; }")
    await page.get_by_label("cue 5001: text").fill("Several words.")
    await expect(page.locator(STATE)).to_have_text("10,000 cues · not saved yet")
    await page.keyboard.press("Control+s")
    await expect(page.locator(STATE)).to_have_text("10,000 cues · saved")
    await page.keyboard.press("Control+z")
    await expect(page.locator(STATE)).to_have_text("10,000 cues · not saved yet")


async def texts_of(page: Page) -> list[str]:
    return await page.locator("[data-cue=text]").evaluate_all(
        "all => all.map((field) => field.value)"
    )


async def times_of(page: Page) -> list[tuple[str, str]]:
    columns = [
        await page.locator(f"[data-cue={name}]").evaluate_all(
            "all => all.map((field) => field.value)"
        )
        for name in ("start_ms", "end_ms")
    ]
    return list(zip(*columns, strict=True))
