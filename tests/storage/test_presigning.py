"""Presigned addresses expire no later than the credentials that signed them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest
from hostile_texts import ALL
from hypothesis import given
from hypothesis import strategies as st

from portal.config import Config
from portal.errors import StorageDenied
from portal.storage.bucket import open_storage
from portal.storage.presigning import attachment

KEY = "hls/a/1/360p/00000.m4s"
HOUR_S = 3600
# Allowance for the time between the test's expiry and the signing.
SLACK_S = 120


Issue = Callable[[str, float], None]


@pytest.fixture
def issue(monkeypatch: pytest.MonkeyPatch) -> Issue:
    """Set temporary credentials in the environment, which botocore reads again."""

    def issue(token: str, expires_in_s: float) -> None:
        expiry = datetime.now(UTC) + timedelta(seconds=expires_in_s)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"KEY-{token}")
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", expiry.isoformat())

    return issue


def expiry_and_token(address: str) -> tuple[int, str]:
    """Return the lifetime in an address, and the token that it was signed with."""
    query = parse_qs(urlsplit(address).query)
    return int(query["X-Amz-Expires"][0]), query["X-Amz-Security-Token"][0]


async def test_address_ends_with_its_credentials(issue: Issue, config: Config) -> None:
    issue("first", HOUR_S)
    long_s = 12 * HOUR_S
    async with open_storage(config) as storage:
        for address in (
            await storage.public.presign_get(KEY, ttl_s=long_s),
            await storage.internal.presign_get(KEY, ttl_s=long_s),
            await storage.public.presign_put(KEY, content_type="video/mp4", ttl_s=long_s),
            *(await storage.public.presign_get_many([KEY], ttl_s=long_s)).values(),
        ):
            life_s, token = expiry_and_token(address)
            assert HOUR_S - SLACK_S < life_s <= HOUR_S
            assert token == "first"  # no secret
        assert HOUR_S - SLACK_S < await storage.public.address_life_s(long_s) <= HOUR_S


async def test_credentials_are_refreshed_before_they_end(issue: Issue, config: Config) -> None:
    issue("first", 700)
    async with open_storage(config) as storage:
        await storage.public.presign_get(KEY, ttl_s=60)
        issue("second", 2 * HOUR_S)
        life_s, token = expiry_and_token(await storage.public.presign_get(KEY, ttl_s=HOUR_S))
        assert (life_s, token) == (HOUR_S, "second")


async def test_expired_credentials_sign_nothing(issue: Issue, config: Config) -> None:
    issue("first", -1)
    async with open_storage(config) as storage:
        with pytest.raises(StorageDenied):
            await storage.public.presign_get(KEY, ttl_s=60)


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("Förde.mp4", "Förde.mp4"),
        ("holiday\u202e4pm.mov", "holiday4pm.mov"),
        ("\U0001f3ac" * 250 + " 1080p.mp4", "\U0001f3ac" * 56 + ".mp4"),
        ("ü" * 200, "ü" * 115),
        ("a." + "b" * 300, "a." + "b" * 228),
    ],
)
def test_file_name_fits_every_file_system(name: str, saved: str) -> None:
    header = attachment(name)
    assert header.endswith(f"filename*=UTF-8''{quote(saved, safe='')}")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.sampled_from(ALL))
def test_a_file_name_cannot_leave_its_header(name: str) -> None:
    header = attachment(name)
    assert header.isascii()
    assert header.isprintable()
    match = re.fullmatch(
        r"attachment; filename=\"([^\"\\%]*)\"; filename\*=UTF-8''([^\s;]*)", header
    )
    assert match is not None
    assert set(unquote(match[2])) <= set(name) | {"\n"}
