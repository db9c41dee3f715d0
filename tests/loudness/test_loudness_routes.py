"""The loudness of a video in the API, its panel in the workshop, and the gain of players."""

import re
from typing import Any

import pytest
from api_client import answered, faults
from audit_lines import lines
from page_texts import page, send, words_of
from playable_videos import ready_video
from quart import Quart
from signed_in import Sender, configure
from versioned_settings import check_versions

from portal.config import Config, ConfigError
from portal.database.account_models import Account
from portal.database.models import Video

pytestmark = pytest.mark.shared_app
QUIET = {"integrated_lufs": -27.3, "loudness_range_lu": 6.1, "true_peak_dbtp": -9.8}
RECORDED = {
    "evenLoudness": True,
    "integratedLufs": -27.3,
    "loudnessRangeLu": 6.1,
    "truePeakDbtp": -9.8,
    "targetLufs": -16.0,
    "gainDb": 8.8,
}
AS_IT_IS = {**RECORDED, "evenLoudness": False, "gainDb": 0.0}
NOT_MEASURED = {
    **RECORDED,
    "integratedLufs": None,
    "loudnessRangeLu": None,
    "truePeakDbtp": None,
    "gainDb": 0.0,
}


async def put(sender: Sender, video: Video, *, is_even: Any) -> Any:
    path = f"/api/videos/{video.id}/loudness"
    body = {"evenLoudness": is_even}
    return await sender.ask("PUT", path, json=body, headers={"If-Match": "*"})


def setting(text: str) -> Config:
    return Config.from_env({"DATABASE_URL": "postgresql:///portal", "LOUDNESS": text})


def gain_in(text: str) -> float | None:
    """Return the gain of the player on a page."""
    found = re.search(r'data-gain-db="([^"]+)"', text)
    return float(found[1]) if found else None


async def test_program_reads_the_loudness_and_switches_the_gain_off(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, **QUIET)
    path = f"/api/videos/{video.id}/loudness"
    assert await answered(await editor.get(path)) == RECORDED
    off, on = ({"evenLoudness": is_even} for is_even in (False, True))
    saved = await check_versions(editor, path, off, on, conflict="loudness_changed")
    assert saved == AS_IT_IS
    changes = [line for line in await lines() if line["action"] == "video.loudness_changed"]
    assert [line["detail"] for line in changes] == [
        {"even_loudness": "off"},
        {"even_loudness": "on"},
    ]
    assert await faults(await put(editor, video, is_even="on")) == {
        "/evenLoudness": "Give true or false."
    }


async def test_sound_that_was_not_measured_plays_as_it_is(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith)
    assert await answered(await editor.get(f"/api/videos/{video.id}/loudness")) == NOT_MEASURED
    assert gain_in(await page(editor, f"/videos/{video.id}")) is None
    workshop = words_of(await page(editor, f"/videos/{video.id}/edit"))
    assert "Not measured. The sound plays as it is." in workshop


async def test_page_and_embed_have_the_gain_of_the_video(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith, **QUIET)
    even = [await page(editor, path) for path in (f"/videos/{video.id}", f"/embed/{video.id}")]
    assert [gain_in(text) for text in even] == [8.8, 8.8]
    await put(editor, video, is_even=False)
    assert gain_in(await page(editor, f"/videos/{video.id}")) is None


async def test_panel_shows_the_figures_in_words_and_saves_the_switch(
    editor: Sender, edith: Account
) -> None:
    video = await ready_video(edith, **QUIET)
    panel = f"/videos/{video.id}/loudness"
    text = words_of(await page(editor, panel))
    assert "The sound plays 8.8 dB louder." in text
    assert "Integrated loudness -27.3 LUFS Loudness range 6.1 LU True peak -9.8 dBTP" in text
    # A box that isn't checked is not sent.
    saved = await send(editor, f"{panel}/panel", {}, 200)
    assert "The sound plays as it is." in words_of(saved)
    assert "data-saved" in saved
    await send(editor, panel, {"evenLoudness": "on"}, 303)
    shown = words_of(await page(editor, f"/videos/{video.id}/edit?saved=loudness"))
    assert "The sound plays 8.8 dB louder." in shown
    assert "Saved." in shown


async def test_loud_sound_is_lowered(editor: Sender, edith: Account) -> None:
    video = await ready_video(edith, integrated_lufs=-9.5, loudness_range_lu=2, true_peak_dbtp=0.4)
    text = words_of(await page(editor, f"/videos/{video.id}/loudness"))
    assert "The sound plays 6.5 dB quieter." in text


async def test_portal_without_even_loudness_has_no_switch(
    app: Quart, editor: Sender, edith: Account
) -> None:
    configure(app, loudness=0.0)
    video = await ready_video(edith, **QUIET)
    assert gain_in(await page(editor, f"/videos/{video.id}")) is None
    record = await answered(await editor.get(f"/api/videos/{video.id}/loudness"))
    assert record == {**RECORDED, "targetLufs": None, "gainDb": 0.0}
    text = await page(editor, f"/videos/{video.id}/loudness")
    assert "Even loudness is off on this portal." in words_of(text)
    assert "evenLoudness" not in text


@pytest.mark.parametrize(("text", "lufs"), [("-23", -23.0), ("-18.5", -18.5), ("off", None)])
def test_setting_is_a_loudness_or_off(text: str, lufs: float | None) -> None:
    assert setting(text).loudness_lufs == lufs


@pytest.mark.parametrize("text", ["0", "16", "-32", "-4.9", "on", "-1e1", "nan"])
def test_setting_outside_of_its_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="use a number from -31 to -5, or off"):
        setting(text)
