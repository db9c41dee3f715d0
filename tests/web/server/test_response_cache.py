"""A popular address costs one answer in two seconds; who asks alone sees the newest."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from portal.web.server.request_context import STATE, RequestState, allow_framing, state_of
from portal.web.server.response_cache import (
    MAX_ADDRESSES,
    MAX_AGE_S,
    MAX_KEPT_BYTES,
    ResponseCache,
    allow_sharing,
    forget_shared,
)

HOST = b"portal.example"


class Site:
    """An app behind a `ResponseCache` whose answers are counted."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.answered = 0
        self.status = 200
        self.is_shared = True
        self.padding = b""
        # What an answer says of those before it.
        self.forgets: dict[str, bool] | None = None
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        # What a client does with the end of an answer, by its name.
        self.at_end: Callable[[str], Awaitable[None]] | None = None
        self.cache = ResponseCache(self._app, clock=lambda: self.now_s)

    async def ask(self, path: str = "/status", **request: Any) -> str:
        """The body of the answer."""
        return (await self.exchange(path, **request))[1]

    async def exchange(
        self,
        path: str,
        *,
        method: str = "GET",
        host: bytes = HOST,
        client: str = "a",
        credentials: Sequence[tuple[bytes, bytes]] = (),
    ) -> tuple[dict[str, Any], str]:
        """The request's scope as it was left, and the body of the answer."""
        scope: Any = {
            **{"type": "http", "method": method, "path": path, "query_string": b""},
            STATE: RequestState(client=client),
            "headers": [(b"host", host), *credentials],
        }
        body = b""

        async def send(message: Any) -> None:
            nonlocal body
            body += message.get("body", b"")
            if self.at_end and message.get("more_body") is False:
                await self.at_end(client)

        await self.cache(scope, receive, send)
        return scope, body.decode()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if self.forgets:
            forget_shared(scope, **self.forgets)
        if self.is_shared:
            allow_sharing(scope)
        if scope["path"].startswith("/embed"):
            allow_framing(scope, "*")
        self.answered += 1
        number = self.answered
        await asyncio.sleep(0)
        if self.before_answer:
            await self.before_answer()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        half = {"type": "http.response.body", "body": b"answer ", "more_body": True}
        await send(half)
        last = str(number).encode() + self.padding
        await send({**half, "body": last, "more_body": False})

    @property
    def newest(self) -> str:
        return f"answer {self.answered}"

    async def become_popular(self, path: str = "/status") -> None:
        """Three seconds of requests."""
        for _ in range(20):
            await self.ask(path)
            self.now_s += 0.15


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def popular(site: Site) -> Site:
    """Many have just asked for its status."""
    await site.become_popular()
    return site


async def receive() -> Any:
    await asyncio.Event().wait()


async def test_who_asks_alone_always_gets_the_newest(site: Site) -> None:
    for number in range(1, 30):
        assert await site.ask() == f"answer {number}"
        site.now_s += MAX_AGE_S


async def test_popular_address_costs_one_answer_in_two_seconds(site: Site) -> None:
    for _ in range(1000):
        await site.ask()
        site.now_s += 0.02
    # Twenty seconds, and all of those who came in the first two before it was popular.
    assert site.answered <= 100 + 11


async def test_shared_answer_is_never_older_than_two_seconds(site: Site) -> None:
    for _ in range(500):
        site.now_s += 0.01
        if await site.ask() != site.newest:
            pytest.fail("an older answer than the last one was given out")
    before = site.answered
    site.now_s += MAX_AGE_S
    assert await site.ask() == f"answer {before + 1}"


async def test_address_that_is_popular_no_more_is_answered_anew(popular: Site) -> None:
    popular.now_s += 5
    for _ in range(2):
        before = popular.answered
        assert await popular.ask() == f"answer {before + 1}"
        popular.now_s += 0.1


async def test_what_is_not_the_same_for_everyone_is_not_shared(site: Site) -> None:
    site.is_shared = False
    for number in range(1, 100):
        assert await site.ask() == f"answer {number}"
        site.now_s += 0.01
    assert len(site.cache) == 0


async def test_other_names_and_methods_have_answers_of_their_own(popular: Site) -> None:
    before = popular.answered
    assert await popular.ask(host=b"other.example") == f"answer {before + 1}"
    assert await popular.ask(method="HEAD") == f"answer {before + 2}"
    assert await popular.ask(method="OPTIONS") == f"answer {before + 3}"
    assert await popular.ask(method="POST", client="b") == f"answer {before + 4}"
    assert await popular.ask("/other") == f"answer {before + 5}"


async def test_who_changed_something_sees_it_at_once_and_the_others_soon(popular: Site) -> None:
    shared = await popular.ask()
    await popular.ask("/edit", method="POST", client="editor")
    before = popular.answered
    assert await popular.ask(client="editor") == f"answer {before + 1}"
    assert await popular.ask(client="viewer") == shared
    popular.now_s += MAX_AGE_S
    assert await popular.ask(client="viewer") == f"answer {before + 2}"


async def test_who_changes_something_sees_it_even_if_they_ask_before_they_have_been_told(
    popular: Site,
) -> None:
    shared = await popular.ask()
    seen = []

    async def ask_again(client: str) -> None:
        popular.at_end = None
        seen.append(await popular.ask(client=client))

    popular.at_end = ask_again
    await popular.ask("/edit", method="POST", client="editor")
    assert seen == [popular.newest]
    assert seen != [shared]


async def test_large_answer_goes_to_those_who_wait_for_it_and_is_not_kept(site: Site) -> None:
    site.padding = bytes(MAX_KEPT_BYTES)
    await site.become_popular()
    before = site.answered
    await asyncio.gather(*(site.ask() for _ in range(10)))
    assert site.answered == before + 1
    await site.ask()
    assert site.answered == before + 2


async def test_marks_of_an_answer_go_with_it(site: Site) -> None:
    await site.become_popular("/embed/1")
    before = site.answered
    scope, _ = await site.exchange("/embed/1")
    assert site.answered == before
    assert state_of(scope).framed_by


async def test_askers_at_once_share_and_one_that_leaves_takes_nothing_away(site: Site) -> None:
    await site.ask()
    may_answer = asyncio.Event()

    async def wait() -> None:
        await may_answer.wait()

    site.before_answer = wait
    first, *others = [asyncio.create_task(site.ask()) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others.pop().cancel()
    first.cancel()
    await asyncio.sleep(0)
    may_answer.set()
    # The one who asked for all has gone, and what they asked for was made all the same.
    assert await asyncio.gather(*others) == ["answer 2"] * 18


async def test_nobody_joins_what_was_begun_two_seconds_ago(site: Site) -> None:
    """It may have looked before something was made private."""
    await site.ask()
    may_answer = asyncio.Event()

    async def wait() -> None:
        await may_answer.wait()

    site.before_answer = wait
    slow = asyncio.create_task(site.ask())
    await asyncio.sleep(0)
    site.now_s += MAX_AGE_S
    site.before_answer = None
    async with asyncio.timeout(5):
        assert await site.ask() == "answer 3"
    may_answer.set()
    assert await slow == "answer 2"


@pytest.mark.parametrize("credentials", [[], [(b"authorization", b"Bearer portal_a")]])
async def test_what_fewer_may_see_is_answered_when_no_process_gives_it_out(
    popular: Site, monkeypatch: pytest.MonkeyPatch, credentials: list[tuple[bytes, bytes]]
) -> None:
    """By this one it is given out no more while the answer is held."""
    held: list[float] = []
    shared = await popular.ask(client="viewer")

    async def hold(pause_s: float) -> None:
        if pause_s:
            monkeypatch.undo()
            held.append(pause_s)
            seen.append(await popular.ask(client="viewer"))

    for is_less_seen, expected in ((True, [MAX_AGE_S]), (False, [])):
        popular.forgets = {"is_less_seen": is_less_seen}
        seen: list[str] = []
        held.clear()
        monkeypatch.setattr(asyncio, "sleep", hold)
        changed = await popular.ask("/access", method="PUT", credentials=credentials)
        monkeypatch.undo()
        popular.forgets = None
        assert held == expected
        assert not seen or seen == [popular.newest]
        assert await popular.ask(client="viewer") not in (shared, changed)


async def test_slow_taker_holds_nobody_up(site: Site) -> None:
    await site.ask()
    taken = asyncio.Event()

    async def take_slowly(client: str) -> None:
        if client == "slow":
            await taken.wait()

    site.at_end = take_slowly
    slow = asyncio.create_task(site.ask(client="slow"))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await site.ask(client="quick") == "answer 2"
    assert not slow.done()
    taken.set()
    await slow


async def test_failure_is_everyones_who_waits_for_it_and_not_kept(popular: Site) -> None:
    popular.now_s += MAX_AGE_S
    popular.status = 503
    before = popular.answered
    found = await asyncio.gather(*(popular.ask() for _ in range(5)))
    assert found == [f"answer {before + 1}"] * 5
    popular.status = 200
    assert await popular.ask() == f"answer {before + 2}"


async def test_other_addresses_have_other_answers_and_memory_is_bounded(site: Site) -> None:
    answers = {await site.ask(f"/{number}") for number in range(MAX_ADDRESSES * 2)}
    assert len(answers) == MAX_ADDRESSES * 2
    assert len(site.cache) == MAX_ADDRESSES
