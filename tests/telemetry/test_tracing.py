"""One trace tells a video's whole way; without traces a job names its request all the same."""

from pathlib import Path

import aiohttp
import pytest
from running_portal import create, final_status, run_portal, until
from signed_in import PASSWORD
from single_sign_on import CALLBACK, CLIENT_ID, CLIENT_SECRET, LEAVE, query_of, small_provider
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
        # The job is told last, when it has ended.
        await until(lambda: collector.named("portal:transcode"), timeout_s=30)

    (request,) = collector.named("POST /api/videos")
    assert request.service == "portal-web"
    assert request.attributes["portal.request_id"] == REQUEST_ID
    assert not request.parent_id
    trace = [span for span in collector.spans if span.trace_id == request.trace_id]

    (job,) = collector.named("portal:transcode")
    assert job.service == "portal-worker"
    assert job.parent_id == request.span_id
    assert job.attributes["video_id"] == video["id"]
    assert job.attributes["request_id"] == REQUEST_ID
    for name in ("probe", "copy", "upload", "finish", "publish"):
        assert any(span.name == name for span in trace), name
        line = collector.line_of(collector.named(name)[0])
        assert line[-2:] == ["portal:transcode", "POST /api/videos"]
    for service in ("portal-web", "portal-worker"):
        own = [span for span in trace if span.service == service]
        assert any("db.statement" in span.attributes for span in own), "no database statement"
        assert any(span.name == "GET" for span in own), "no call to storage"
    assert collector.named("GET /api/videos/<id>"), "named by its route"
    roots = {span.name for span in collector.spans if not span.parent_id}
    assert all(name.split()[0] in ("GET", "POST") and "/" in name for name in roots), roots


@pytest.mark.slow
async def test_traces_of_a_single_sign_on_hold_none_of_its_secrets(
    environ: dict[str, str],
) -> None:
    async with small_provider() as provider, collecting() as collector:
        provider.person = {"sub": "ann", "email": "ann@example.org", "email_verified": True}
        client = {"OIDC_CLIENT_ID": CLIENT_ID, "OIDC_CLIENT_SECRET": CLIENT_SECRET}
        settings = {"OIDC_ISSUER": provider.issuer, **client, **collector.settings()}
        async with (
            run_portal({**environ, **settings}, worker=False) as portal,
            # It keeps cookies of bare IP addresses, too.
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
        ):
            form = {"email": "ann@example.org", "password": PASSWORD}
            await browser.post(f"{portal.base_url}/set-up", data=form)
            browser.cookie_jar.clear()
            async with browser.get(f"{portal.base_url}{LEAVE}?next=/people") as answer:
                assert answer.url.path == "/people"
                left, back = (str(it.url) for it in answer.history[1:])
            # No other address tells its query, either.
            await browser.get(f"{portal.base_url}/people?q=own-words-5ec7e7")
            await until(lambda: len(collector.named("GET /people")) > 1, timeout_s=30)
    assert CALLBACK in back
    hidden = {*query_of(back).values(), "own-words-5ec7e7"} - {provider.issuer}
    hidden |= {query_of(left)[name] for name in ("state", "nonce")}
    told = "\n".join(collector.texts)
    assert [it for it in {*hidden, CLIENT_SECRET, *provider.secrets} if it in told] == []


def test_a_job_of_a_job_goes_back_to_the_same_request() -> None:
    assert current_trace_context() == {}
    with traced_job("test", {"request_id": "first"}, video_id="1"):
        assert current_trace_context() == {"request_id": "first"}
    with log_context(request_id="second"):
        assert current_trace_context() == {"request_id": "second"}
