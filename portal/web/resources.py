"""The former names of `composition`, for callers that are to compose themselves."""

from portal.web.composition import WebContext as Resources
from portal.web.composition import open_context as open_resources

__all__ = ["Resources", "open_resources"]
