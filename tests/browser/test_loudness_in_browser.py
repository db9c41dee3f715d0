"""The gain of a video's sound: heard in the player, and switched off in the workshop."""

import pytest
from chromium import OpenPage, Publish, open_workshop, play_past, save_panel
from player_page import open_player, read, wait_for
from playwright.async_api import Page, expect
from running_portal import run_ffmpeg

# A tone of this level on both sides has -26 LUFS, which is 10 dB below the target.
LEVEL = 0.05
RAISED = 0.158
# Keeps an analyser of what the gain puts out.
LISTEN = """
const { createGain } = AudioContext.prototype;
AudioContext.prototype.createGain = function () {
    const node = createGain.call(this);
    window.analyser = this.createAnalyser();
    node.connect(window.analyser);
    return node;
};
window.heardPeak = () => {
    const samples = new Float32Array(window.analyser?.fftSize ?? 0);
    window.analyser?.getFloatTimeDomainData(samples);
    return Math.max(...samples.map(Math.abs));
};
"""
WITHOUT_CONTEXT = "delete window.AudioContext;"
WAITING_CONTEXT = """
window.AudioContext = class extends AudioContext {
    get state() { return "suspended"; }
    resume() { return new Promise(() => {}); }
};
"""


@pytest.fixture(scope="session")
async def quiet_film(publish: Publish, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The id of a video with quiet sound."""
    wave = f"{LEVEL}*sin(2*PI*997*t)"
    picture = ("-f", "lavfi", "-i", "testsrc2=s=160x90:r=10")
    sound = ("-f", "lavfi", "-i", f"aevalsrc='{wave}|{wave}':s=48000")
    codecs = ("-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac")
    target = tmp_path_factory.mktemp("quiet") / "quiet.mp4"
    path = run_ffmpeg(target, *picture, *sound, "-t", "10", "-g", "20", *codecs, "-b:a", "160k")
    return await publish(path, "A quiet film", until="ready")


async def hear(page: Page, level: float) -> None:
    """Wait until the sound of the player has this level."""
    await page.wait_for_function(
        "level => Math.abs(window.heardPeak() / level - 1) < 0.15", arg=level
    )


async def test_quiet_sound_is_raised_before_the_volume(page: Page, quiet_film: str) -> None:
    await page.add_init_script(LISTEN)
    await open_player(page, f"/videos/{quiet_film}")
    assert float(await read(page, "video.dataset.gainDb")) == pytest.approx(10, abs=0.5)
    # The player makes its audio nodes when sound is first heard.
    assert not await page.evaluate("'analyser' in window")
    await read(page, "void (video.volume = 1, video.loop = true, video.play())")
    await hear(page, RAISED)
    await read(page, "void (video.volume = 0.5)")
    await hear(page, RAISED / 2)
    # The gain stays after a pause.
    await read(page, "video.pause()")
    await read(page, "void (video.volume = 1, video.play())")
    await hear(page, RAISED)


async def test_embed_that_starts_muted_is_raised_once_it_is_heard(
    page: Page, quiet_film: str
) -> None:
    await page.add_init_script(LISTEN)
    await open_player(page, f"/embed/{quiet_film}?muted=1&autoplay=1")
    await play_past(page, 0.5)
    assert not await page.evaluate("'analyser' in window")
    await read(page, "void (video.volume = 1, video.loop = true, video.muted = false)")
    await hear(page, RAISED)


@pytest.mark.parametrize("script", [WITHOUT_CONTEXT, WAITING_CONTEXT])
async def test_sound_plays_as_it_is_where_web_audio_does_not_run(
    page: Page, quiet_film: str, script: str
) -> None:
    await page.add_init_script(script)
    await open_player(page, f"/videos/{quiet_film}")
    await read(page, "void video.play()")
    await wait_for(page, "video.currentTime > 1 && video.webkitAudioDecodedByteCount > 0")
    assert not await read(page, "video.muted")
    assert await read(page, "'gainDb' in video.dataset && !('gainApplied' in video.dataset)")


@pytest.mark.slow
async def test_editor_switches_the_gain_off(open_page: OpenPage, quiet_film: str) -> None:
    page = await open_page(width=360)
    address = f"/videos/{quiet_film}"
    await open_workshop(page, address, "Loudness")
    panel = page.locator("#loudness")
    await expect(panel).to_contain_text("dB louder.")
    for is_even, words in ((False, "The sound plays as it is."), (True, "dB louder.")):
        await panel.get_by_role("switch", name="Even loudness").set_checked(is_even)
        await save_panel(page, "loudness")
        await expect(panel).to_contain_text(words)
        other = await page.context.new_page()
        await open_player(other, address)
        assert await read(other, "'gainDb' in video.dataset") == is_even
        await other.close()
