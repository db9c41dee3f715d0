"""Opening the provider of the settings. Its libraries take 10 MB of memory: they are imported only
where single sign-on is set up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from portal.config import Config

if TYPE_CHECKING:
    from portal.accounts.oidc.provider import Provider


@asynccontextmanager
async def open_provider(config: Config) -> AsyncIterator[Provider | None]:
    """The provider of the settings, which is not asked for anything yet; None if there is none."""
    if not config.oidc_issuer:
        yield None
        return
    import httpx

    from portal.accounts.oidc.asking import TIMEOUT_S
    from portal.accounts.oidc.provider import Provider

    async with httpx.AsyncClient(timeout=TIMEOUT_S) as http:
        yield Provider(config, http)
