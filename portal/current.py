"""What the request at hand works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import current_app, request

if TYPE_CHECKING:
    from portal.resources import Resources
    from portal.serving.crowds import Render


def current_resources() -> Resources:
    """The shared connections of the process that answers this request."""
    resources: Resources = current_app.extensions["portal"]
    return resources


async def shared_fragment(render: Render) -> str:
    """The fragment at the address that is asked for; a crowd of askers shares it."""
    return await current_resources().fragments.get(request.full_path, render)
