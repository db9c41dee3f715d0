"""Pauses between tries, and the limits of retries."""

from time import monotonic

import pytest

from portal.retry import Backoff, RetryLater, retry

AT_ONCE = Backoff(first_s=0.001, cap_s=0.002)


class Flaky:
    """Work that fails a number of times before it succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "done"


def test_pauses_double_up_to_the_cap_and_vary_by_at_most_a_half() -> None:
    backoff = Backoff(first_s=1, cap_s=10)
    for failures, whole_s in ((1, 1), (2, 2), (4, 8), (5, 10), (5_000, 10)):
        pauses = {backoff.pause_s(failures) for _ in range(50)}
        assert all(whole_s / 2 <= pause_s <= whole_s for pause_s in pauses)
        assert len(pauses) > 1


async def test_work_is_retried_within_its_time_and_after_the_requested_pause() -> None:
    work = Flaky(1, RetryLater("busy", pause_s=0.2))
    begun_at = monotonic()
    assert await retry(work, on=(RetryLater,), backoff=AT_ONCE) == "done"
    assert monotonic() - begun_at >= 0.2

    work = Flaky(10_000, ConnectionError("away"))
    with pytest.raises(ConnectionError, match="away"):
        await retry(work, on=(ConnectionError,), backoff=AT_ONCE, give_up_after_s=0.1)
    assert work.calls > 1
    # Another failure is raised at once.
    work = Flaky(3, ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        await retry(work, on=(ConnectionError,), backoff=AT_ONCE)
    assert work.calls == 1
