"""Hooks of schemathesis (see fuzz.toml) that upload a file to each presigned address.

Without uploads there would be no videos, and no operation on a video would succeed.
"""

from typing import Any
from uuid import uuid4

import requests
import schemathesis
from schemathesis import Case, HookContext, Response

FILE = b"the raw bytes of a video"
TEXTS = ["text/vtt", "application/x-subrip", "application/cmcd"]
schemathesis.serializer.alias(TEXTS, "text/plain")


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    """Give each valid request its own idempotency key."""
    key = (case.headers or {}).get("Idempotency-Key")
    if key and case.meta and case.meta.generation.mode.is_positive:
        case.headers["Idempotency-Key"] = f"{uuid4().hex}{key}"[:255]


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    if (case.method, case.path) == ("POST", "/api/videos/presign") and response.status_code == 200:
        headers = {"Content-Type": case.body["contentType"]}
        url = response.json()["uploadUrl"]
        requests.put(url, data=FILE, headers=headers, timeout=60).raise_for_status()
