"""Drives a portal by what openapi-python-client made; prints the id of the video."""

import sys
from io import BytesIO
from uuid import UUID

import httpx
from portal_api import AuthenticatedClient
from portal_api.api.captions import add_captions, put_captions
from portal_api.api.editing import delete_video, patch_video
from portal_api.api.videos import create_video, list_videos, presign
from portal_api.api.webhooks import create_webhook
from portal_api.models import (
    CreatedVideo,
    CreatedWebhook,
    CreateVideoRequest,
    DeletedVideo,
    EditedVideo,
    EventType,
    PresignRequest,
    PresignRequestContentType,
    PresignResponse,
    SavedCaptions,
    VideoList,
    VideoPatch,
    WebhookRequest,
)
from portal_api.types import File

portal_url, token, receiver_url = sys.argv[1:]
portal = AuthenticatedClient(base_url=portal_url, token=token, raise_on_unexpected_status=True)

events = [EventType.VIDEO_CREATED, EventType.VIDEO_DELETED]
webhook = create_webhook.sync(client=portal, body=WebhookRequest(events=events, url=receiver_url))
assert isinstance(webhook, CreatedWebhook), webhook

wanted = PresignRequest(PresignRequestContentType.VIDEOMP4, file_name="harbour.mp4")
upload = presign.sync(client=portal, body=wanted)
assert isinstance(upload, PresignResponse), upload
sent = httpx.put(upload.upload_url, content=b"raw bytes", headers={"Content-Type": "video/mp4"})
assert sent.is_success, sent.text

described = CreateVideoRequest(
    title="Harbour",
    description="",
    category_ids=[1],
    tags="",
    file_name="harbour.mp4",
    key=upload.key,
)
video = create_video.sync(client=portal, body=described)
assert isinstance(video, CreatedVideo), video

listed = list_videos.sync(client=portal, id=[UUID(video.id)], limit=1)
assert isinstance(listed, VideoList), listed
assert [it.title for it in listed.videos] == ["Harbour"]

edited = patch_video.sync(video.id, client=portal, body=VideoPatch(title="Harbour at dawn"))
assert isinstance(edited, EditedVideo), edited
assert (edited.title, edited.category_ids) == ("Harbour at dawn", [1])

file = File(BytesIO(b"1\n00:00:01,000 --> 00:00:02,000\nHello"))
added = add_captions.sync(video.id, client=portal, body=file, language="en")
assert isinstance(added, SavedCaptions), added
file = File(BytesIO(b"WEBVTT\n\n0:01.000 --> 0:02.000\nGood morning"))
saved = put_captions.sync(video.id, "en", client=portal, body=file)
assert isinstance(saved, SavedCaptions), saved

deleted = delete_video.sync(video.id, client=portal)
assert isinstance(deleted, DeletedVideo), deleted
sys.stdout.write(deleted.id)
