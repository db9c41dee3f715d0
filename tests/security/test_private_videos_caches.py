"""Attacks on private videos by asking at once, and by what caches on the way may keep."""

import asyncio
from time import monotonic
from typing import Any

import pytest
from api_client import answered
from guarded_routes import Things, routes
from private_videos import AUDIENCES, Cast, make_ready, told
from quart import Quart
from running_portal import until
from signed_in import Sender, text_of

from portal.database.models import Video
from portal.web.composition import WebContext

ASKERS = ("its editor", "another editor", "nobody")
AT_ONCE = 200
POLLERS = 50
ROUNDS = 5
# Machines ask for these; they are the same for everyone.
FOR_ALL = ("/static/", "/healthz", "/readyz", "/metrics")
pytestmark = pytest.mark.shared_app(downloads=True)


def addresses(video: Video) -> list[str]:
    """What is asked for of a video, by pages, programs and players."""
    parts = ("", "/status", "/remaining", "/related", "/share")
    found = [f"/videos/{video.id}{it}" for it in parts]
    found += [f"/embed/{video.id}", f"/embed/{video.id}/stage", f"/api/videos/{video.id}/transcode"]
    found += [f"/videos/{video.id}/poster.jpg", f"/hls/{video.id}/1/master.m3u8"]
    return [*found, f"/hls/{video.id}/1/low/playlist.m3u8", f"/api/videos/{video.id}/metadata"]


def essence(told: tuple[Any, ...]) -> tuple[Any, ...]:
    """An answer without the time that signatures were made at."""
    status, headers, text = told
    return status, {it for it in headers if it[0] != "location"}, text.partition("X-Amz-")[0]


@pytest.mark.parametrize("is_hot", [False, True], ids=["cold", "hot"])
async def test_two_people_and_nobody_at_once_get_their_own_answers(
    resources: WebContext, cast: Cast, *, is_hot: bool
) -> None:
    """Two hundred requests at once in a mix, five times, for thirty addresses of private and
    public videos; what each gets is what they get alone.
    """
    videos = [await make_ready(resources, cast.editor, it, title=f"A {it}") for it in AUDIENCES]
    paths = ["/", "/?tag=x", *(path for video in videos for path in addresses(video))]
    asked = [(name, path) for path in paths for name in ASKERS]

    async def answer(name: str, path: str) -> tuple[Any, ...]:
        return essence(await told(await cast.senders[name][0].get(path)))

    alone = {it: await answer(*it) for it in asked}
    assert len({str(alone[name, "/"]) for name in ASKERS}) == len(ASKERS)
    end = monotonic() + (4.5 if is_hot else 0)
    for number in range(ROUNDS):
        # Some addresses so often that their answers are shared.
        mix = [asked[(number * 7 + it * 5) % len(asked)] for it in range(AT_ONCE)]
        if is_hot:
            mix = [(name, path) for name, path in mix for path in (path, paths[2])][:AT_ONCE]
        answers = await asyncio.gather(*(answer(*it) for it in mix))
        wrong = [it for it, got in zip(mix, answers, strict=True) if got != alone[it]]
        assert wrong == []
        await asyncio.sleep(max(0, (end - monotonic()) / (ROUNDS - number)))


async def test_caches_are_told_of_everything_that_depends_on_who_asks(
    app: Quart, cast: Cast
) -> None:
    """Every route as nobody, an editor and a program, on a portal with accounts: what is shared
    on the way says for whom, and what is for one person says that nobody else keeps it.
    """
    things, wrong = Things(cast.editor), []
    for route in routes(app):
        if route.rule.startswith(FOR_ALL):
            continue
        for name in ("nobody", "its editor", "viewer's token"):
            thing_id = await things.id_for(route)
            answer = await cast.senders[name][0].ask(route.method, route.path(thing_id))
            vary = ", ".join(answer.headers.getlist("Vary"))
            control = answer.headers.get("Cache-Control", "")
            is_own = "private" in control or "no-store" in control
            if not {"Authorization", "Cookie"} <= set(vary.split(", ")) or (
                name != "nobody" and not is_own
            ):
                wrong.append((name, route.method, route.rule, vary, control))
            assert "public" not in control, route
            assert vary.count("Cookie") == 1, route
    assert wrong == []


async def put_visibility(sender: Sender, video: Video, visibility: str) -> None:
    body = {"visibility": visibility, "signedInOnly": False, "embedOrigins": []}
    address, headers = f"/api/videos/{video.id}/access", {"If-Match": "*"}
    await answered(await sender.ask("PUT", address, json=body, headers=headers))


async def test_made_private_while_fifty_poll_it(resources: WebContext, cast: Cast) -> None:
    """Fifty clients ask without a pause for twelve addresses and the library, while the video is
    made private and public again five times. What is asked for after the change was answered
    shows nothing of it, whatever was under way.
    """
    video = await make_ready(resources, cast.editor, "public", title="Heron")
    sender, nobody = cast.senders["its editor"][0], cast.senders["nobody"][0]
    paths = [*addresses(video), f"/api/videos/{video.id}", "/"]
    # Both in the time of this loop: when the present state began, and requests by their beginning.
    since, is_private, seen = monotonic(), False, [0, 0]
    wrong: list[object] = []
    ended = asyncio.Event()

    async def poll(number: int) -> None:
        step = number
        while not ended.is_set():
            path, begun, was_private = paths[step % len(paths)], monotonic(), is_private
            answer = await nobody.get(path)
            text = await text_of(answer)
            shows = str(video.id) in text if path == "/" else answer.status_code < 400
            # Changed meanwhile, it may be either.
            if begun > since and was_private is is_private and not changing:
                seen[is_private] += 1
                if shows is is_private:
                    wrong.append((path, is_private, answer.status_code))
            step += 1

    async def go_on() -> None:
        enough = seen[is_private] + 45
        await until(lambda: seen[is_private] >= enough, timeout_s=30, interval_s=0.05)

    changing = False
    async with asyncio.TaskGroup() as group:
        for number in range(POLLERS):
            group.create_task(poll(number))
        for _ in range(ROUNDS):
            for wanted in ("private", "public"):
                await go_on()
                changing = True
                await put_visibility(sender, video, wanted)
                since, is_private, changing = monotonic(), wanted == "private", False
        await go_on()
        ended.set()
    assert wrong == []
    assert min(seen) > 200
