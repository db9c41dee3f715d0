"""HTTP/1.1, and strictly: how Hypercorn's protocol, and h11 below it, read requests here.

HTTP/2 is not spoken: what is limited in the number and size of connections and requests has other
ways around it there, and browsers speak it with TLS alone, and so with the proxy in front.

h11 takes lines that end in a bare LF (RFC 9112 section 2.2 lets it) and folded ones (section 5.2
does not). A proxy in front may see other headers in them, or another end of the request, so both
are refused. What h11 refuses is answered with a problem document.
"""

import re
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer
from hypercorn import protocol as hypercorn_protocol
from hypercorn.protocol.h11 import H11Protocol

from portal.errors import MalformedRequest, TooManyHeaders, UnknownCoding
from portal.web.server.error_responses import problem_response

BARE_OR_FOLDED = re.compile(rb"(?<!\r)\n|\n[ \t]")
ERRORS = {
    431: TooManyHeaders("The request's headers are larger than 16 KiB. Send less."),
    501: UnknownCoding(),
}


def install() -> None:
    """Make Hypercorn read requests by `StrictProtocol`."""
    # Looked up there for each new connection.
    vars(hypercorn_protocol)["H11Protocol"] = StrictProtocol


class StrictProtocol(H11Protocol):
    """Never becomes HTTP/2: an upgrade to it is ignored, its preface a request like any other."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        vars(self.connection)["_receive_buffer"] = StrictBuffer()

    async def _check_protocol(self, event: h11.Request) -> None:
        pass

    async def _send_error_response(self, status_code: int) -> None:
        error = ERRORS.get(status_code) or MalformedRequest()
        response = problem_response(error)
        own = self.config.response_headers("h11")
        headers = [*response.headers, (b"connection", b"close"), *own]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=response.body))
        await self._send_h11_event(h11.EndOfMessage())


class StrictBuffer(ReceiveBuffer):
    """Refuses bare and folded lines of a request's head and of its trailers."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        if not self._data.startswith(b"\r\n"):
            end = self._data.find(b"\r\n\r\n")
            if BARE_OR_FOLDED.search(self._data, 0, end if end >= 0 else len(self._data)):
                raise h11.LocalProtocolError("a line ends in a bare LF or is folded")
        return super().maybe_extract_lines()
