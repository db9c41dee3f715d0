"""Where things lie in the bucket: uploads as `videos/<id>.<extension>`, output below `hls/`."""

import re
from uuid import UUID

UPLOAD_FOLDER = "videos/"
OUTPUT_FOLDER = "hls/"
# As `upload_key` makes them.
UPLOAD_KEY = re.compile(rf"{UPLOAD_FOLDER}[0-9a-f]{{32}}\.[a-z0-9]{{1,255}}")


def upload_key(upload_id: UUID, extension: str) -> str:
    """Storage key of a raw file: `videos/<unique id>.<extension>`."""
    return f"{UPLOAD_FOLDER}{upload_id.hex}.{extension}"


def upload_id(key: str) -> str:
    """The unique id inside the storage key of a raw file."""
    return key.removeprefix(UPLOAD_FOLDER).partition(".")[0]


def output_prefix(video_id: UUID | str, attempt: int) -> str:
    """Where one transcoding attempt writes; published output is never written again."""
    return f"{output_root(video_id)}{attempt}/"


def output_root(video_id: UUID | str) -> str:
    """Where everything that was made of a video lies."""
    return f"{OUTPUT_FOLDER}{video_id}/"
