"""What the fragments that ask for themselves again have in common."""

from collections.abc import Awaitable, Callable
from functools import wraps

from quart import render_template

from portal.errors import VideoNotFound

Fragment = Callable[[str], Awaitable[str]]
PolledFragment = Callable[[str], Awaitable[str | tuple[str, int]]]


def polled(*, gone: str) -> Callable[[Fragment], PolledFragment]:
    """A view of a polled fragment: once its video is gone, 410 with the template `gone`.

    Pages show that one. A 404 they don't: it may come from a proxy that lost the portal.
    """

    def decorate(view: Fragment) -> PolledFragment:
        @wraps(view)
        async def fragment(video_id: str) -> str | tuple[str, int]:
            try:
                return await view(video_id)
            except VideoNotFound:
                return await render_template(gone), 410

        return fragment

    return decorate
