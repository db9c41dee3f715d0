"""A single trace covers a video's way to publication. Untraced jobs keep their request's id."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from running_portal import create, final_status, run_portal, until
from trace_collector import collecting

from portal.telemetry.logs import log_context
from portal.telemetry.tracing import current_trace_context, traced_job

REQUEST_ID = "the-request-that-is-traced"


@pytest.mark.slow
async def test_one_trace_leads_from_the_request_to_the_finished_video(
    environ: dict[str, str], short_video: Path
) -> None:
    async with collecting() as collector, run_portal({**environ, **collector.settings()}) as portal:
        video = await create(portal.base_url, short_video, request_id=REQUEST_ID)
        assert await final_status(portal.base_url, video["id"]) == "ready"
        # The job's span is exported last.
        await until(lambda: collector.named("portal:transcode"), timeout_s=30)

    (request,) = collector.named("POST /api/videos")
    assert request.service == "portal-web"
    assert request.attributes["portal.request_id"] == REQUEST_ID
    assert not request.parent_id
    trace = [span for span in collector.spans if span.trace_id == request.trace_id]

    (job,) = collector.named("portal:transcode")
    assert job.service == "portal-worker"
    assert job.parent_id == request.span_id
    assert job.attributes["version_id"] == video["id"]
    assert job.attributes["request_id"] == REQUEST_ID
    for name in ("probe", "copy", "upload", "finish", "publish"):
        assert any(span.name == name for span in trace), name
        line = collector.line_of(collector.named(name)[0])
        assert line[-2:] == ["portal:transcode", "POST /api/videos"]
    for service in ("portal-web", "portal-worker"):
        spans = [span for span in trace if span.service == service]
        assert any("db.statement" in span.attributes for span in spans), "no database statement"
        assert any(span.name == "GET" for span in spans), "no call to storage"
    calls = [span for name in ("GET", "HEAD", "PUT") for span in collector.named(name)]
    assert {urlsplit(call.attributes["http.url"]).path for call in calls} == {""}
    assert collector.named("GET /api/videos/<id>"), "named by its route"
    roots = {span.name for span in collector.spans if not span.parent_id}
    assert all(name.split()[0] in ("GET", "POST") and "/" in name for name in roots), roots


def test_job_enqueued_by_a_job_has_the_same_request() -> None:
    assert current_trace_context() == {}
    with traced_job("test", {"request_id": "first"}, video_id="1"):
        assert current_trace_context() == {"request_id": "first"}
    with log_context(request_id="second"):
        assert current_trace_context() == {"request_id": "second"}
