"""What views work with: the web process's context."""

from quart import current_app

from portal.web.composition import WebContext


def web_context() -> WebContext:
    """The context of the process that answers this request."""
    context: WebContext = current_app.extensions["portal"]
    return context
