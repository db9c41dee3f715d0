"""An app without any work, as the baseline of the API.

Its arguments are a port and a folder. It runs with the server settings of `portal web`.
"""

import sys
from functools import cache
from pathlib import Path

from hypercorn.run import run
from quart import Quart, Response

from portal.web.serve import server_config

app = Quart(__name__)


@app.get("/")
async def index() -> dict[str, str]:
    return {"hello": "world"}


@app.get("/page")
async def page() -> Response:
    return Response(content(), content_type="application/json")


@cache
def content() -> bytes:
    return (Path(sys.argv[2]) / "page.json").read_bytes()


if __name__ == "__main__":
    run(server_config("bare_app:app", host="127.0.0.1", port=int(sys.argv[1])))
