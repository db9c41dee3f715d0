"""List the container and the tracks of a media file as JSON.

The program runs in a separate, confined process (`python -I -m portal.client.contents`), because
hostile files attack parsers. The request with the file's `address` and options is read from stdin.
"""

import io
import json
import sys
from typing import Any

import av
from av.stream import Disposition

_KINDS = ("video", "audio", "subtitle")


def _carried(container_format: str) -> set[str]:
    """Return the names of the codecs that FFmpeg writes into a container."""
    with av.open(io.BytesIO(), "w", format=container_format) as output:
        return set(output.supported_codecs)


def _describe(stream: Any, carried: dict[str, set[str]], decoders: set[str]) -> dict[str, Any]:
    """Return the facts about a track, with the formats into which it can be copied.

    None of them fits a picture that the portal doesn't decode.
    """
    codec = stream.codec_context.codec if stream.codec_context else None
    names = {codec.name, codec.canonical_name} if codec else set()
    is_decoded = stream.type != "video" or bool(names & decoders)
    return {
        "index": stream.index,
        "kind": stream.type,
        "codec": codec.canonical_name if codec else "an unknown codec",
        "is_cover": bool(stream.disposition & Disposition.attached_pic),
        "is_text": stream.type == "subtitle" and bool(codec and codec.text_sub),
        "fits": [name for name, codecs in carried.items() if is_decoded and names & codecs],
    }


def main() -> None:
    """Read the request from stdin, and print the contents or an `error`."""
    request = json.load(sys.stdin)
    av.logging.set_level(None)
    carried = {name: _carried(name) for name in request["formats"]}
    decoders = set(request["decoders"].split(","))
    try:
        with av.open(
            request["address"], options=request["options"], metadata_errors="replace"
        ) as container:
            answer = {
                "container": container.format.long_name,
                "title": container.metadata.get("title", ""),
                "duration_s": (container.duration or 0) / av.time_base,
                "tracks": [
                    _describe(stream, carried, decoders)
                    for stream in container.streams
                    if stream.type in _KINDS
                ],
            }
    except (av.FFmpegError, MemoryError, OSError, ValueError) as exc:
        answer = {"error": str(exc)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
