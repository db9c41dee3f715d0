"""Metrics for Prometheus: values, authorization, and availability during outages."""

from pathlib import Path
from time import monotonic
from uuid import UUID, uuid4

import aiohttp
import pytest
from api_client import Client, app_client, published, run_sql
from prometheus_client.parser import text_string_to_metric_families
from running_portal import create, final_status, free_port, run_portal, until
from upload_client import stored

from portal.config import Config
from portal.database.models import Outcome
from portal.films import attempts
from portal.films.attempts import Failure
from portal.web import monitoring

TOKEN = "a-token-for-the-test"
JOBS = "portal_jobs"
# Far more than the limit, on a machine that does other things.
SOON_S = 12


class Scrape:
    """Sample values by name and labels."""

    def __init__(self, text: str) -> None:
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self._values.get((name, frozenset(labels.items())))

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of a name with at least these labels."""
        required = frozenset(labels.items())
        return sum(
            value
            for (sample, has), value in self._values.items()
            if sample == name and required <= has
        )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the cache and shorten the time limit, so that tests need not wait."""
    monkeypatch.setattr(monitoring, "FIGURES_MAX_AGE_S", 0.0)
    monkeypatch.setattr(monitoring, "FIGURES_TIMEOUT_S", 1.0)


async def scrape(client: Client) -> Scrape:
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return Scrape((await response.get_data()).decode())


async def test_metrics_require_the_setting_and_the_token(config: Config) -> None:
    async with app_client(config) as client:
        assert (await client.get("/metrics")).status_code == 404
    async with app_client(config, metrics=True, metrics_token=TOKEN) as client:
        for header in ("", TOKEN, f"Bearer {TOKEN}x", "Bearer \u00e9"):
            headers = {"Authorization": header} if header else {}
            response = await client.get("/metrics", headers=headers)
            assert response.status_code == 401
            assert response.headers["WWW-Authenticate"].startswith("Bearer")
            assert "portal_" not in (await response.get_data()).decode()
        response = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert response.status_code == 200
        assert TOKEN not in (await response.get_data()).decode()


async def test_requests_are_counted_by_route_and_not_by_path(config: Config) -> None:
    async with app_client(config, metrics=True) as client:
        before = await scrape(client)
        for _ in range(5):
            await client.get(f"/api/videos/{uuid4()}")
            await client.get(f"/no/such/{uuid4()}")
            await client.open("/api/categories", method="BREW")
        after = await scrape(client)

    def counted(**labels: str) -> float:
        name = "portal_http_requests_total"
        return after.total(name, **labels) - before.total(name, **labels)

    assert counted(route="/api/videos/<id>", method="GET", status="404") == 5
    assert counted(route="unmatched", method="GET", status="404") == 5
    assert counted(method="other", status="405") == 5
    assert counted(route="/metrics", status="200") == 1
    durations = "portal_http_request_duration_seconds_count"
    assert after.total(durations) == after.total("portal_http_requests_total")
    # This very request is under way.
    assert after.value("portal_http_requests_in_flight") == 1


async def reject(video_id: UUID, code: str) -> None:
    """Have a worker begin with a video, and refuse it."""
    attempt = await attempts.begin(video_id, worker="w")
    assert attempt is not None
    await attempts.reject(attempt, Failure(code), message="Sorry.")


async def test_metrics_report_uploads_queue_videos_failures_and_leases(
    config: Config, impatient: None
) -> None:
    async with app_client(config, metrics=True) as client:
        before = await scrape(client)
        parts = await stored(client, b"x" * 1000)
        await client.post(f"/api/uploads/{parts['uploadId']}/complete")
        await client.delete(f"/api/uploads/{parts['uploadId']}")
        videos = [UUID((await published(client))["id"]) for _ in range(4)]
        failed, handed_back, lost, _ = videos
        await reject(failed, "not_a_video")
        attempt = await attempts.begin(handed_back, worker="w")
        assert attempt is not None
        await attempts.release(attempt, Outcome.HANDED_BACK, None)
        await attempts.begin(handed_back, worker="w")
        await attempts.begin(lost, worker="w")
        await run_sql(
            config.database_url,
            f"""
            UPDATE attempts SET lease_expires_at = now() - interval '1 s' WHERE video_id = '{lost}';
            UPDATE procrastinate_jobs SET status = 'doing'
            WHERE id = (SELECT transcode_job_id FROM videos WHERE id = '{lost}');
            UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 h'
            WHERE id = (SELECT transcode_job_id FROM videos WHERE id = '{handed_back}');
            UPDATE procrastinate_events SET at = at - interval '100 s';
            INSERT INTO video_days (day, kind, value, views, viewers, watch_ms, share, stalls,
              failures, ignored, startups)
            SELECT '2026-11-01'::date + n, 'all', '', 3, 4, 5000, 60, 2, 1, 7,
              array_fill(0, ARRAY[20]) || 5 || array_fill(0, ARRAY[55])
            FROM generate_series(1, 2) AS n;
            """,
        )
        scraped = await scrape(client)
        # Totals outlive their videos.
        assert (await client.delete(f"/api/videos/{failed}")).status_code == 202
        later = await scrape(client)
    assert later.value("portal_attempts_total", outcome="failed", code="not_a_video") == 1
    assert later.value("portal_videos", status="failed") == 0
    # Counts of this process since it started.
    uploads = {"issued": 5, "started": 1, "completed": 1, "discarded": 1, "published": 4}
    for event, count in uploads.items():
        counted = [value.total("portal_uploads_total", event=event) for value in (before, scraped)]
        assert counted[1] - counted[0] == count, event
    assert scraped.value("portal_up", part="database") == 1
    for state, count in (("waiting", 2), ("scheduled", 1), ("running", 1)):
        assert scraped.value(JOBS, queue="prepare", state=state) == count
        assert scraped.value(JOBS, queue="transcode", state=state) == 0
        oldest = scraped.value("portal_jobs_oldest_seconds", queue="prepare", state=state)
        assert oldest is not None
        assert 100 <= oldest < 400
    assert scraped.value("portal_videos", status="processing") == 3
    assert scraped.value("portal_videos", status="failed") == 1
    assert scraped.value("portal_videos_failed", code="not_a_video") == 1
    assert scraped.value("portal_worker_leases", state="live") == 1
    assert scraped.value("portal_worker_leases", state="expired") == 1
    ended = "portal_attempts_total"
    assert scraped.value(ended, outcome="failed", code="not_a_video") == 1
    assert scraped.value(ended, outcome="handed_back", code="") == 1
    names = ("views", "watch_seconds", "stalls", "failures", "records_ignored")
    playback = [scraped.value(f"portal_playback_{name}_total") for name in names]
    assert playback == [6, 10, 4, 2, 14]
    startups = "portal_playback_startup_seconds_bucket"
    # The start-up times of the range below 0.05 s * 1.1 ** 20 = 0.336 s.
    assert [scraped.value(startups, le=le) for le in ("0.278", "0.492", "+Inf")] == [0, 10, 10]


async def test_without_a_database_the_process_still_answers_in_time(
    config: Config, impatient: None
) -> None:
    nowhere = f"postgresql://portal@127.0.0.1:{free_port()}/portal"
    async with app_client(config, metrics=True, database_url=nowhere) as client:
        began = monotonic()
        scraped = await scrape(client)
        assert monotonic() - began < SOON_S
    assert scraped.value("portal_up", part="database") == 0
    assert scraped.value("portal_http_requests_in_flight") == 1
    assert scraped.value("portal_videos", status="ready") is None


async def get(base_url: str, path: str) -> str:
    """Read over a new connection, so that any of the web processes may answer."""
    async with aiohttp.ClientSession() as session, session.get(base_url + path) as response:
        assert response.status == 200
        return await response.text()


@pytest.mark.slow
async def test_several_web_processes_count_together_and_transcodes_are_measured(
    environ: dict[str, str], short_video: Path, tmp_path: Path
) -> None:
    request_count = 30
    environ = {**environ, "WEB_WORKERS": "2", "METRICS": "on", "TMPDIR": str(tmp_path)}
    async with run_portal(environ) as portal:
        video = await create(portal.base_url, short_video)
        assert await final_status(portal.base_url, video["id"]) == "ready"
        for _ in range(request_count):
            await get(portal.base_url, "/api/categories")
        scraped = Scrape("")

        async def are_counted() -> bool:
            """A request is counted after its answer, and figures are kept for seconds."""
            nonlocal scraped
            scraped = Scrape(await get(portal.base_url, "/metrics"))
            requests = scraped.total("portal_http_requests_total", route="/api/categories")
            return requests == request_count and scraped.value("portal_videos", status="ready") == 1

        await until(are_counted, timeout_s=30)
    assert scraped.value("portal_uploads_total", event="published") == 1
    assert scraped.value("portal_uploaded_bytes_total") == short_video.stat().st_size
    assert scraped.value("portal_attempts_total", outcome="published", code="") == 1
    assert scraped.value("portal_transcode_duration_seconds_count") == 1
    assert scraped.value("portal_transcode_duration_seconds_bucket", le="+Inf") == 1
    assert scraped.total("portal_transcode_duration_seconds_sum") > 0
    media = scraped.value("portal_transcode_media_seconds_total")
    assert media == pytest.approx(2, abs=0.2)
    assert not list(tmp_path.glob("portal-metrics-*")), "counts of this start would be found again"
