"""Which call of the API follows from an answer, as OpenAPI links (3.1, section 4.8.20).

Tools that read the document walk along these: from a key to its upload, from a video to its
editing and its end.
"""

from typing import Any

VIDEO_ID = "$response.body#/id"
UPLOAD_ID = "$response.body#/uploadId"
KEY = {"key": "$response.body#/key"}


def _to(operation_id: str, body: dict[str, str] | None = None, **parameters: str) -> dict[str, Any]:
    link = {"operationId": operation_id, "parameters": parameters, "requestBody": body}
    return {name: value for name, value in link.items() if value}


OF_A_VIDEO = {
    **{
        name: _to(name, id=VIDEO_ID)
        for name in (
            *("get_video", "get_transcode", "get_metadata", "retry_transcode", "delete"),
            *("create_playback_link", "list_playback_links"),
        )
    },
    # Whatever is recorded; see `get_metadata` for the way that loses no edit.
    "put_metadata": _to("put_metadata", None, **{"path.id": VIDEO_ID, "header.If-Match": "*"}),
}
OF_AN_UPLOAD = {
    "get_upload": _to("get_upload", id=UPLOAD_ID),
    "sign_part": _to("sign_part", None, id=UPLOAD_ID, number="1"),
    "complete_upload": _to("complete_upload", id=UPLOAD_ID),
    "discard_upload": _to("discard_upload", id=UPLOAD_ID),
}
# By operation and status of the answer.
LINKS = {
    ("presign", "200"): {
        "create_video": _to("create_video", KEY),
        "start_upload": _to("start_upload", KEY),
    },
    ("create_video", "201"): OF_A_VIDEO,
    ("get_metadata", "200"): {
        "put_metadata": _to(
            "put_metadata",
            None,
            **{"path.id": "$request.path.id", "header.If-Match": "$response.header.ETag"},
        )
    },
    ("start_upload", "201"): OF_AN_UPLOAD,
    ("create_playback_link", "201"): {
        "revoke_playback_link": _to(
            "revoke_playback_link", None, id="$request.path.id", link_id=VIDEO_ID
        )
    },
    ("complete_upload", "200"): {"create_video": _to("create_video", KEY)},
}
