"""Request and response shapes of the four documented calls.

`CreatedVideo` and `RetrievedVideo` are separate on purpose: they have the same members today, but
for playbackUrl, and may diverge.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from portal.database.models import Video
from portal.database.states import VideoStatus, Visibility
from portal.videos.metadata import (
    FILE_NAME_PATTERN,
    MAX_FILE_NAME_LENGTH,
    Submission,
    file_name_fault,
)
from portal.web.api.metadata_shapes import References, VideoMetadata
from portal.web.api.shapes import SIZE_FORMAT, Shape, Text, Timestamp, keeping


def _is_issued(value: str, info: ValidationInfo) -> str:
    if isinstance(info.context, References) and not info.context.key_is_issued:
        raise PydanticCustomError(
            "key", "This key was not issued here. Send the key from POST /api/videos/presign."
        )
    return value


FileName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_FILE_NAME_LENGTH,
        description="Original file name.",
        json_schema_extra={"pattern": FILE_NAME_PATTERN},
    ),
    AfterValidator(keeping(file_name_fault)),
]


class CategoryRecord(Shape):
    """A category of the fixed table."""

    id: int = Field(ge=1, le=32767)
    name: str


class CategoryList(Shape):
    """All categories."""

    categories: list[CategoryRecord]


class PresignRequest(Shape):
    """Asks for an address to upload one file to."""

    file_name: FileName
    content_type: Literal["video/mp4", "video/quicktime"]


class PresignResponse(Shape):
    """Where to PUT the file, and the key to send back when that is done."""

    upload_url: str = Field(
        description="Signed address; PUT the raw bytes with the announced Content-Type.",
        json_schema_extra={"format": "uri"},
    )
    key: str = Field(description="Storage key, `videos/<unique id>.<extension>`.")


class CreateVideoRequest(VideoMetadata):
    """Says that the upload is complete, and describes the video. Text is kept as submitted."""

    file_name: FileName
    key: Annotated[
        Text,
        Field(description="The key from POST /api/videos/presign."),
        AfterValidator(_is_issued),
    ]

    def submission(self) -> Submission:
        """The same for services."""
        return Submission(metadata=self.value(), file_name=self.file_name, key=self.key)


class NewVideoQuery(Shape):
    """What may be said of a new video in the address."""

    visibility: Visibility | None = Field(None, description="Who may see it from the start.")


class CreatedVideo(Shape):
    """A video's record as answered to its creation."""

    id: str
    title: str
    description: str
    category_ids: list[int]
    tags: str
    file_name: str
    storage_key: str
    transcode_job_id: str
    status: VideoStatus
    size_bytes: Annotated[int, Field(json_schema_extra=SIZE_FORMAT)]
    created_at: Timestamp
    updated_at: Timestamp


class RetrievedVideo(Shape):
    """A video's record as read by its id."""

    id: str
    title: str
    description: str
    category_ids: list[int]
    tags: str
    file_name: str
    storage_key: str
    transcode_job_id: str
    status: VideoStatus
    playback_url: str = Field(
        description="Address of the HLS master playlist when ready, otherwise empty."
    )
    size_bytes: Annotated[int, Field(json_schema_extra=SIZE_FORMAT)]
    created_at: Timestamp
    updated_at: Timestamp


def created_video(video: Video) -> CreatedVideo:
    """The record of a video that was just created."""
    columns = {name: getattr(video, name) for name in CreatedVideo.model_fields}
    ids = {"id": str(video.id), "transcode_job_id": str(video.transcode_job_id)}
    return CreatedVideo(**columns | ids)
