"""The fragments of a video's page, and what takes its place once the video is gone."""

from collections.abc import Callable
from typing import Any, TypeVar

from quart import Quart

View = TypeVar("View", bound=Callable[..., Any])

GONE = "_gone_template"


def fragment(*, gone: str = "videos/_gone.html") -> Callable[[View], View]:
    """A view of a fragment: once its video is gone it answers 410 with the template `gone`.

    Pages show that one. A 404 they don't: it may come from a proxy that lost the portal.
    """

    def declare(view: View) -> View:
        setattr(view, GONE, gone)
        return view

    return declare


def gone_template(app: Quart, endpoint: str | None) -> str | None:
    """The template that a fragment named; None for any other view."""
    return getattr(app.view_functions.get(endpoint or ""), GONE, None)
