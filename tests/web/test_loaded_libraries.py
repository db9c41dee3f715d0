"""What a portal has not set up takes no memory of its processes."""

from command_line import loaded_by

# Nothing is contacted yet, so there need be nothing at these addresses.
OPENED = """
import asyncio
import portal.web.serve
from portal.config import Config
from portal.web.composition import open_context

async def main(environ):
    async with open_context(Config.from_env(environ)):
        pass

settings = {"DATABASE_URL": "postgresql://portal@db/portal", "S3_BUCKET": "videos"}
"""
OF_SINGLE_SIGN_ON = {"authlib", "portal.accounts.oidc"}
OF_SIGNATURES = {"joserfc", "cryptography"}
OF_TRACES = {"opentelemetry"}
SIGN_ON = {
    "OIDC_ISSUER": "https://sign-on.example.org",
    "OIDC_CLIENT_ID": "portal",
    "OIDC_CLIENT_SECRET": "a-secret-for-the-test",
}


def test_libraries_are_loaded_only_where_they_are_needed() -> None:
    plain = loaded_by(f"{OPENED}asyncio.run(main(settings))")
    assert "portal.web.composition" in plain
    assert not plain & (OF_SINGLE_SIGN_ON | OF_SIGNATURES | OF_TRACES)
    with_sign_on = loaded_by(f"{OPENED}asyncio.run(main(settings | {SIGN_ON}))")
    assert with_sign_on >= OF_SINGLE_SIGN_ON
    worker = loaded_by("import portal.worker.run")
    assert not worker & (OF_SINGLE_SIGN_ON | OF_SIGNATURES | OF_TRACES)
