"""Presigned addresses say that they live no longer than the credentials that sign them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from portal.config import Config
from portal.errors import StorageDenied
from portal.storage.bucket import Storage, open_storage

KEY = "hls/a/1/360p/00000.m4s"
HOUR_S = 3600
# Between the moment the test writes an expiry, and the signing.
SLACK_S = 120


class Role:
    """Temporary credentials, as a role has them, in the environment; botocore reads them again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def issue(self, token: str, *, expires_in_s: float) -> None:
        expiry = datetime.now(UTC) + timedelta(seconds=expires_in_s)
        self._monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"KEY-{token}")
        self._monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        self._monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", expiry.isoformat())


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Role:
    role = Role(monkeypatch)
    role.issue("first", expires_in_s=HOUR_S)
    return role


@pytest.fixture
async def storage(role: Role, config: Config) -> AsyncIterator[Storage]:
    async with open_storage(config) as storage:
        yield storage


def said(address: str) -> tuple[int, str]:
    """The life that an address announces, and the token that it was signed with."""
    query = parse_qs(urlsplit(address).query)
    return int(query["X-Amz-Expires"][0]), query["X-Amz-Security-Token"][0]


async def test_address_ends_with_its_credentials(storage: Storage) -> None:
    addresses = [
        await storage.public.presign_get(KEY, ttl_s=12 * HOUR_S),
        await storage.internal.presign_get(KEY, ttl_s=12 * HOUR_S),
        await storage.public.presign_put(KEY, content_type="video/mp4", ttl_s=12 * HOUR_S),
        *(await storage.public.presign_get_many([KEY], ttl_s=12 * HOUR_S)).values(),
    ]
    for address in addresses:
        life_s, token = said(address)
        assert HOUR_S - SLACK_S < life_s <= HOUR_S
        assert token == "first"  # no secret
    assert HOUR_S - SLACK_S < await storage.public.address_life_s(12 * HOUR_S) <= HOUR_S


async def test_credentials_are_refreshed_before_they_end(role: Role, config: Config) -> None:
    role.issue("first", expires_in_s=700)
    async with open_storage(config) as storage:
        await storage.public.presign_get(KEY, ttl_s=60)
        role.issue("second", expires_in_s=2 * HOUR_S)
        life_s, token = said(await storage.public.presign_get(KEY, ttl_s=HOUR_S))
        assert (life_s, token) == (HOUR_S, "second")


async def test_expired_credentials_sign_nothing(role: Role, config: Config) -> None:
    role.issue("first", expires_in_s=-1)
    async with open_storage(config) as storage:
        with pytest.raises(StorageDenied):
            await storage.public.presign_get(KEY, ttl_s=60)
