"""Serves the bare app on a port with the settings of `portal web`."""

import sys

from hypercorn.run import run

from portal.web.server.hypercorn_config import server_config

if __name__ == "__main__":
    run(server_config("bare_app:app", host="127.0.0.1", port=int(sys.argv[1])))
