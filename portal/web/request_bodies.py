"""How large the body of a request may be, and how long it may take to arrive, where that is more.

Media are sent to storage, never here. A picture for a poster is: it is small, and a form that sends
it works without scripts, which an address of storage would not. It goes on to a worker as it is.
"""

import re
from typing import Any

from quart import Request

MAX_PICTURE_BYTES = 10_000_000
# At a megabit a second.
PICTURE_TIMEOUT_S = 100
TAKES_PICTURES = re.compile(r"/videos/[^/]+/poster/picture(?:/panel)?")


class LimitedRequest(Request):
    """A request whose body is limited by its address, before anything of it is read."""

    def __init__(self, method: str, scheme: str, path: str, *rest: Any, **values: Any) -> None:
        if TAKES_PICTURES.fullmatch(path):
            # What a form adds to its file is less than any other body.
            values["max_content_length"] += MAX_PICTURE_BYTES
            values["body_timeout"] = PICTURE_TIMEOUT_S
        super().__init__(method, scheme, path, *rest, **values)
        # The parser of forms has a limit of its own, which is the app's if there is no other.
        self.max_content_length = values.get("max_content_length")
