"""Attacks that ask for a private video, and look at how long the refusal takes."""

from itertools import count
from math import erf, sqrt
from statistics import median
from time import perf_counter
from uuid import uuid4

import pytest
from private_videos import Cast, make_ready
from signed_in import Sender

from portal.accounts.permissions import Audience
from portal.web import videos
from portal.web.composition import WebContext

PAIRS = 150
# What one more query takes is a third of all; a busy machine's noise falls on both alike.
MOST_RATIO = 1.12
# Of chance alone: with six addresses and two people, one such result in a million runs.
LEAST_P = 1e-7
# Noise may hide a difference once, or show one that is none.
LOOKS = 3
PATHS = (
    "/api/videos/{}",
    "/api/videos/{}/metadata",
    "/videos/{}",
    "/embed/{}",
    "/hls/{}/1/master.m3u8",
    "/oembed?url=http%3A%2F%2Flocalhost%2Fvideos%2F{}",
)
# For those with an account.
CHANGES = (("PUT", "/api/videos/{}/metadata"), ("POST", "/videos/{}/delete"))
pytestmark = pytest.mark.shared_app(log_level="ERROR", public_url="http://localhost")


async def took_s(sender: Sender, method: str, path: str) -> float:
    """How long a refusal takes."""
    began_at = perf_counter()
    answer = await sender.ask(method, path)
    duration_s = perf_counter() - began_at
    assert answer.status_code == 404
    return duration_s


async def compare(sender: Sender, method: str, path: str, video_id: str) -> tuple[float, float]:
    """How a private id's median is to an unknown one's, and how likely chance does as much.

    Both are asked for by turns, the first of each pair changing, so that what else the machine
    does falls on both alike.
    """
    private_s, unknown_s = list[float](), list[float]()
    for number in range(PAIRS):
        pair = [(private_s, video_id), (unknown_s, str(uuid4()))]
        for durations_s, asked in pair if number % 2 else reversed(pair):
            durations_s.append(await took_s(sender, method, path.format(asked)))
    return median(private_s) / median(unknown_s), mann_whitney_p(private_s, unknown_s)


def mann_whitney_p(first: list[float], second: list[float]) -> float:
    """Two-sided p of the rank-sum test, by the normal distribution."""
    ranks = dict(zip(sorted([*first, *second]), count(1), strict=False))
    sizes = len(first), len(second)
    u = sum(ranks[it] for it in first) - sizes[0] * (sizes[0] + 1) / 2
    spread = sqrt(sizes[0] * sizes[1] * (sum(sizes) + 1) / 12)
    z = abs(u - sizes[0] * sizes[1] / 2) / spread
    return 1 - erf(z / sqrt(2))


def tells(ratio: float, p: float) -> bool:
    """Whether time tells a private id from an unknown one."""
    return p < LEAST_P and not 1 / MOST_RATIO < ratio < MOST_RATIO


async def findings(cast: Cast, video_id: str) -> list[object]:
    """The addresses at which time tells of a private video; looked at again before it is said."""
    found: list[object] = []
    for name in ("nobody", "another editor"):
        asked = [("GET", path) for path in PATHS] + (list(CHANGES) if name != "nobody" else [])
        for method, path in asked:
            for _ in range(LOOKS):
                ratio, p = await compare(cast.senders[name][0], method, path, video_id)
                if not tells(ratio, p):
                    break
            else:
                found.append((name, method, path, round(ratio, 3), p))
    return found


@pytest.mark.slow
async def test_private_ids_take_as_long_as_unknown_ones(resources: WebContext, cast: Cast) -> None:
    """Six addresses as nobody, eight as another editor, 150 pairs of requests each."""
    video = await make_ready(resources, cast.editor)
    assert await findings(cast, str(video.id)) == []


@pytest.mark.slow
async def test_one_query_more_would_be_noticed(
    resources: WebContext, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two faults put in: a query that only the private id takes, or only the unknown one."""
    video = await make_ready(resources, cast.editor)
    honest = videos.require_visible
    for is_slow_when_there in (True, False):

        async def faulty(audience: Audience | None, is_slow: bool = is_slow_when_there) -> None:
            if (audience is not None) is is_slow:
                await resources.progress.load(uuid4())
            await honest(audience)

        monkeypatch.setattr(videos, "require_visible", faulty)
        sender = cast.senders["nobody"][0]
        looks = []
        # More than the honest one gets: noise hides a difference, too.
        while len(looks) < 4 * LOOKS and not any(tells(*it) for it in looks):
            looks.append(await compare(sender, "GET", PATHS[0], str(video.id)))
        assert any(tells(*it) for it in looks), looks
