"""Search finds spoken words with their times, and corrects misspelt words."""

from typing import Any

import pytest
from api_client import Client, answered
from library_pages import add_video, read, say, titles
from page_rows import READY
from signed_in import make_account

from portal.database.models import Visibility
from portal.videos import words

pytestmark = pytest.mark.shared_app

SPEECH = (
    "Welcome to our harbour.",
    "Boats & cranes.",
    "Cranes everywhere.",
    "A harbour of cranes.",
)


async def listed(client: Client, query: str, **more: str) -> dict[str, Any]:
    path = "&".join(f"{name}={value}" for name, value in {"q": query, **more}.items())
    return await answered(await client.get(f"/api/videos?{path}"))


async def test_library_finds_what_is_said_with_the_time(client: Client) -> None:
    spoken = await add_video("A walk", 1, **READY)
    await say(spoken, *SPEECH)
    await say(spoken, "Bienvenue au port.", language="fr")
    await add_video("Harbour", 2)
    page = await read(client, q="harbour")
    assert page.titles == ["Harbour", "A walk"], "what is only said comes last"
    assert page.text.count("Said at") == 1
    # The cue is the one in which the words are closest together.
    answer = await listed(client, "harbour%20crane", include="matches")
    [record] = answer["videos"]
    assert record["matches"] == [{"language": "en", "seconds": 30, "text": "A harbour of cranes."}]
    assert f'href="/videos/{spoken.id}?t=30"' in (await read(client, q="harbour crane")).text
    [record] = (await listed(client, "boats", include="matches"))["videos"]
    assert record["matches"][0]["text"] == "Boats & cranes."
    [record] = (await listed(client, "PORT", include="matches"))["videos"]
    assert (record["matches"][0]["language"], record["matches"][0]["seconds"]) == ("fr", 0)
    assert await titles(client, q="harbour", tag="none") == []
    assert "matches" not in (await listed(client, "boats"))["videos"][0]


async def test_filters_count_before_the_longest_list_of_what_is_said(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "MOST_VIDEOS", 1)
    for number, tags in enumerate(("boats", "boats", "cranes"), start=1):
        await say(await add_video(f"Walk {number}", number, tags=tags, **READY), *SPEECH)
    assert await titles(client, q="harbour", tag="cranes") == ["Walk 3"]


async def test_a_word_that_nobody_wrote_finds_the_nearest(client: Client) -> None:
    await add_video("The conference", 1)
    spoken = await add_video("A talk", 2)
    await say(spoken, "On photosynthesis.")
    page = await read(client, q="confernce")
    assert page.titles == ["The conference"]
    assert "Showing results for “conference”." in page.text
    assert "No results for “confernce”." in page.text
    answer = await listed(client, "fotosynthesis")
    assert (answer["searchedFor"], len(answer["videos"])) == ("photosynthesis", 1)
    answer = await listed(client, "the%20confernece")
    assert (answer["searchedFor"], len(answer["videos"])) == ("the conference", 1)
    assert (await listed(client, "conference"))["searchedFor"] is None
    assert (await listed(client, "zzzzzzz"))["searchedFor"] is None
    # Words of later videos are learned.
    await add_video("Orchestra", 3)
    assert await titles(client, q="orchstra") == ["Orchestra"]


async def test_nobody_learns_of_words_in_what_they_may_not_see(client: Client) -> None:
    await make_account("olga")
    hidden = await add_video("Operation Thunderbolt", 1, visibility=Visibility.UNLISTED)
    await say(hidden, "Moonbeam.")
    for query in ("thunderbot", "moonbaem", "moonbeam"):
        page = await read(client, q=query)
        assert page.titles == []
        assert "Showing results for" not in page.text
