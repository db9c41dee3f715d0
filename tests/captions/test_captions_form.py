"""Form for new captions: a file without warnings is saved at once, others are shown first."""

import re
from io import BytesIO

import pytest
from api_client import Client
from page_rows import READY, make_row
from page_texts import shown, words_of
from werkzeug.datastructures import FileStorage

from portal.database.models import Caption, Video

pytestmark = pytest.mark.shared_app

SRT = "1\n00:00:01,000 --> 00:00:02,500\n{}\n"
RUSSIAN = SRT.format("Доброе утро, друзья.").encode("cp1251")
CHECK = "Check the captions before you save them"


async def send_file(client: Client, video: Video, data: bytes, **fields: str) -> object:
    file = FileStorage(BytesIO(data), "captions.srt")
    return await client.post(f"/videos/{video.id}/captions", form=fields, files={"file": file})


def sent_back(text: str, **changes: str) -> dict[str, str]:
    """Return the fields of the form that shows a file, with changes."""
    [form] = re.findall(r'<form[^>]*id="captions-check".*?</form>', text, re.DOTALL)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
    selects = re.findall(r'<select[^>]*name="(\w+)".*?</select>', form, re.DOTALL)
    chosen = re.findall(r'<option value="([^"]*)"\s+selected>', form)
    return {**hidden, **dict(zip(selects, chosen, strict=True)), **changes}


@pytest.fixture
async def video(client: Client) -> Video:
    return await make_row(**{**READY, "duration_s": 90.0})


async def test_a_plain_file_is_saved_at_once(client: Client, video: Video) -> None:
    answer = await send_file(
        client, video, SRT.format("Good morning.").encode(), language="English"
    )
    assert answer.status_code == 303
    assert (await Caption.get()).text.endswith("Good morning.\n")
    workshop = answer.headers["Location"].partition("#")[0]
    assert "Captions saved." in words_of(await shown(await client.get(workshop)))


async def test_another_encoding_is_shown_and_can_be_changed(client: Client, video: Video) -> None:
    text = await shown(await send_file(client, video, RUSSIAN, language="ru", isDefault="on"))
    assert CHECK in words_of(text)
    assert "Доброе утро, друзья." in text
    assert "It was read as Cyrillic (windows-1251)" in words_of(text)
    assert "Cyrillic (koi8-u)" in words_of(text)
    assert not await Caption.exists()
    address = f"/videos/{video.id}/captions"
    other = sent_back(text, charset="koi8-u", step="preview")
    wrong = await shown(await client.post(address, form=other))
    assert "дНАПНЕ" in wrong
    right = await shown(
        await client.post(address, form=sent_back(wrong, charset="utf-16le", step="save"))
    )
    assert "none of WebVTT" in words_of(right)
    assert "Доброе утро, друзья." in right
    saved = sent_back(right, charset="windows-1251", step="save")
    assert (await client.post(address, form=saved)).status_code == 303
    track = await Caption.get()
    assert (track.language, track.is_default) == ("ru", True)
    assert "Доброе утро, друзья." in (track.text or "")
    # The file stays when it can't be saved.
    again = await shown(await client.post(address, form={**saved, "charset": "koi8-u"}), 422)
    assert "There are captions in this language." in words_of(again)
    assert sent_back(again)["data"] == saved["data"]


async def test_uncertain_encoding_and_late_times_have_to_be_confirmed(
    client: Client, video: Video
) -> None:
    late = RUSSIAN.replace(b"00:00:0", b"01:00:0")
    text = await shown(await send_file(client, video, late, language="en"))
    assert "its encoding is uncertain" in words_of(text)
    fields = sent_back(text, step="save")
    assert (fields["charset"], fields["shift"]) == ("windows-1251", "-3600")
    assert (await client.post(f"/videos/{video.id}/captions", form=fields)).status_code == 303
    track = await Caption.get()
    assert "00:00:01.000 --> 00:00:02.500" in (track.text or "")


async def test_skipped_cues_are_listed_with_their_lines(client: Client, video: Video) -> None:
    text = (
        SRT.format("One")
        + "\n2\n00:00:03,000 --> later\nTwo\n\n3\n00:00:05,000 --> 00:00:05,000\n3"
    )
    form_text = words_of(await shown(await send_file(client, video, text.encode(), language="en")))
    assert "Line 6: The times of this cue can't be read. It was left out." in form_text
    assert "Line 10: This cue had no length." in form_text


async def test_a_file_of_the_largest_size_comes_back(client: Client, video: Video) -> None:
    text = SRT.format("x" * 4_000_000) + "\n2\n00:00:03,000 --> later\nTwo\n"
    form_text = await shown(await send_file(client, video, text.encode(), language="en"))
    saved = sent_back(form_text, step="save")
    assert (await client.post(f"/videos/{video.id}/captions", form=saved)).status_code == 303
    assert (await Caption.get()).cue_count == 1


async def test_file_that_comes_back_damaged_has_to_be_chosen_again(
    client: Client, video: Video
) -> None:
    fields = {"language": "en", "data": "äöü", "charset": "none", "shift": "nan", "step": "save"}
    answer = await client.post(f"/videos/{video.id}/captions", form=fields)
    assert "Choose it again." in await shown(answer, 422)
