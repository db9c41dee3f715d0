"""The app that the API is measured against: one route, no work."""

from quart import Quart

app = Quart(__name__)


@app.get("/")
async def index() -> dict[str, str]:
    """Answers at once."""
    return {"hello": "world"}
