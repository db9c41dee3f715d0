"""No log line and no trace of a portal's processes has what single sign-on keeps secret."""

from pathlib import Path

import httpx
import pytest
from running_portal import fresh_database, run_portal, until
from single_sign_on import CALLBACK, LEAVE, query_of
from small_provider import CLIENT_ID, CLIENT_SECRET, small_provider
from trace_collector import collecting

OWNER = {"email": "ann@example.org", "password": "four calm green boats"}


@pytest.mark.slow
async def test_traces_and_logs_have_neither_codes_nor_states(
    services: dict[str, str], tmp_path: Path
) -> None:
    """At the most talkative level: signed in, refused, and with made-up values."""
    async with (
        small_provider() as provider,
        fresh_database(services) as environ,
        collecting() as collector,
    ):
        provider.person = {"sub": "ann", "email": OWNER["email"], "email_verified": True}
        settings = {
            "OIDC_ISSUER": provider.issuer,
            "OIDC_CLIENT_ID": CLIENT_ID,
            "OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "LOG_LEVEL": "DEBUG",
            **collector.settings(),
        }
        async with (
            run_portal({**environ, **settings}, worker=False, log_dir=tmp_path) as portal,
            httpx.AsyncClient(base_url=portal.base_url) as http,
        ):
            await http.post("/set-up", data=OWNER, headers={"Origin": portal.base_url})
            http.cookies.clear()
            left = await http.get(LEAVE)
            there = await http.get(left.headers["Location"])
            back = await http.get(there.headers["Location"])
            assert back.status_code == 303
            session = http.cookies["portal_session"]
            again = await http.get(there.headers["Location"])
            made_up = await http.get(f"{CALLBACK}?code=made-up-5ec7e7&state=made-up-5ec7e7")
            assert (again.status_code, made_up.status_code) == (400, 400)
            await http.get("/account")
            await until(lambda: collector.named("GET /account"), timeout_s=30)

    sent = query_of(left.headers["Location"])
    hidden = {
        *(CLIENT_SECRET, "made-up", session),
        *(sent["state"], sent["nonce"], query_of(there.headers["Location"])["code"]),
        *(provider.sent[0]["code_verifier"], *provider.tokens),
    }
    traces, log = "\n".join(collector.texts), (tmp_path / "web.log").read_text()
    assert CALLBACK in log
    for secret in hidden:
        assert secret not in log
        assert secret not in traces
