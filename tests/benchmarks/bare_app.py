"""The app that the API is measured against: one route, no work.

Run with a port, it is served with the settings of `portal web`.
"""

import sys

from hypercorn.run import run
from quart import Quart

from portal.web.serve import server_config

app = Quart(__name__)


@app.get("/")
async def index() -> dict[str, str]:
    return {"hello": "world"}


if __name__ == "__main__":
    run(server_config("bare_app:app", host="127.0.0.1", port=int(sys.argv[1])))
