"""What the request at hand works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quart import current_app

if TYPE_CHECKING:
    from portal.resources import Resources


def current_resources() -> Resources:
    """The shared connections of the process that answers this request."""
    resources: Resources = current_app.extensions["portal"]
    return resources
