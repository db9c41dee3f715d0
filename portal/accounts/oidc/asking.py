"""Asking a provider for JSON, with limits of time and size."""

import asyncio
import json
from typing import Any

import httpx

from portal.errors import ProviderUnavailable

# Of one request with its answer, for which someone waits.
TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1_000_000


async def ask_json(
    http: httpx.AsyncClient, method: str, url: str, **options: Any
) -> tuple[int, dict[str, Any]]:
    """The status of an answer, and the JSON object that it is.

    Raises `ProviderUnavailable` for an answer that is late, too large, or something else.
    """
    try:
        # The library's own limits are of each step, of which there can be many.
        async with asyncio.timeout(TIMEOUT_S), http.stream(method, url, **options) as response:
            found = json.loads(await _read(response))
        if not isinstance(found, dict):
            raise ValueError(f"{url} does not answer with a JSON object")
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as exc:
        raise ProviderUnavailable from exc
    return response.status_code, found


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)
