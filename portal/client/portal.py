"""The class `Portal`: publishing, waiting, lists and events through the public JSON API."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, NotRequired, Self, TypedDict, cast
from urllib.parse import urlencode
from uuid import uuid4

import aiohttp
from standardwebhooks import Webhook, WebhookVerificationError
from yarl import URL

from portal.client.calls import REQUEST_TIMEOUT, Api, PortalFailure
from portal.client.publish import OnSent, ignore, send_file

# Pause between calls if the portal or a proxy has no streams.
POLL_INTERVAL_S = 1.0
LATEST = "latest"
CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
}


class Video(TypedDict):
    """Record of a video, as in the API."""

    id: str
    title: str
    description: str
    categoryIds: list[int]
    tags: str
    fileName: str
    storageKey: str
    transcodeJobId: str
    status: Literal["processing", "ready", "failed"]
    sizeBytes: int
    createdAt: str
    updatedAt: str
    # Empty until the video is ready; missing in the response to its creation.
    playbackUrl: NotRequired[str]


class Event(TypedDict):
    """Event of a video or an import.

    `data` is the video's record at that time, only the id of a deleted video, or the id and the
    `failure` of an import.
    """

    id: str
    type: str
    timestamp: str
    sequence: int
    data: Video


class VideoFailed(PortalFailure):
    """Failure to convert a video, with its record and the members of its `failure`.

    `code` is for programs; it is empty if the video is already being converted again.
    """

    def __init__(self, video: Video, failure: Mapping[str, str]) -> None:
        super().__init__(failure.get("message", "The video could not be converted."))
        self.video = video
        self.code = failure.get("code", "")


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes) -> Event:
    """Verify a webhook's request and return its event.

    `secret` is that of the webhook (`whsec_…`). Raises `PortalFailure` for a request with another
    signature, and for one that is older than five minutes.
    """
    try:
        event: Event = Webhook(secret).verify(body, dict(headers))
    except (WebhookVerificationError, ValueError) as exc:
        raise PortalFailure(f"The webhook request is not from the portal: {exc}") from exc
    return event


class Portal:
    """Portal with a URL, and an API token if it has accounts; for `async with`.

    Calls are retried for up to 15 s while the portal is busy or unreachable, and can be repeated
    safely afterwards. They raise `PortalFailure`: `PortalRefused` or `PortalUnreachable`.
    """

    def __init__(self, url: str, *, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._token = token

    async def __aenter__(self) -> Self:
        session = aiohttp.ClientSession(timeout=REQUEST_TIMEOUT)
        try:
            self._api = Api(session, self._url, token=self._token)
        except PortalFailure:
            await session.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.session.close()

    def page_of(self, video_id: str) -> str:
        """Return the URL of a video's page."""
        return f"{self._api.shown_url}/videos/{video_id}"

    async def publish(
        self,
        source: Path | str,
        *,
        categories: Sequence[str | int],
        title: str = "",
        description: str = "",
        tags: str = "",
        visibility: str | None = None,
        on_sent: OnSent = ignore,
    ) -> Video:
        """Upload a file and create its video; return its record.

        If `source` is a string, it is an https URL that the portal downloads; this waits until it
        has. `categories` are names or ids, the title is the file's name by default. Without
        `visibility` the portal's setting applies. `on_sent` is called with the bytes that have
        arrived and the size of the file.
        """
        file = Path(URL(source).name) if isinstance(source, str) else source
        content_type = CONTENT_TYPES.get(file.suffix.lower(), "")
        if source is file and not content_type:
            extensions = ", ".join(CONTENT_TYPES)
            raise PortalFailure(
                f"{file.name}: only {extensions} files can be published. Use "
                "portal.client.repack.repacked for others."
            )
        body = {
            "title": title or file.stem or str(source),
            "description": description,
            "categoryIds": await self._category_ids(categories),
            "tags": tags,
        }
        if isinstance(source, str):
            return await self._import({**body, "url": source, "visibility": visibility})
        named = {"fileName": file.name, "contentType": content_type}
        upload = await self._api.call("POST", "/api/videos/presign", named)
        await send_file(self._api, file, upload["key"], on_sent=on_sent)
        body |= {"fileName": file.name, "key": upload["key"]}
        query = f"?{urlencode({'visibility': visibility})}" if visibility else ""
        created: Video = await self._api.call("POST", f"/api/videos{query}", body)
        return created

    async def wait(self, video_id: str) -> Video:
        """Wait until a video is ready and return its record. Raises `VideoFailed`."""
        path = f"/api/videos/{video_id}"
        while True:
            video: Video = await self._api.call("GET", path)
            if video["status"] == "ready":
                return video
            if video["status"] == "failed":
                progress = await self._api.call("GET", f"{path}/transcode")
                raise VideoFailed(video, progress["failure"] or {})
            async with aclosing(self._api.follow(f"{path}/events")) as messages:
                async for message in messages:
                    # Events contain the record; messages about progress have none.
                    record = message.get("data", message)
                    if record.get("status", "processing") != "processing":
                        break
                else:
                    await asyncio.sleep(POLL_INTERVAL_S)

    async def videos(self, **query: Any) -> AsyncGenerator[Video]:
        """Yield all matching videos, page by page.

        The parameters are those of GET /api/videos, such as `status="ready"` or
        `createdAfter="2026-01-31T12:00:00Z"`; values may be lists.
        """
        cursor: str | None = ""
        while cursor is not None:
            parameters = {**query, "cursor": cursor} if cursor else query
            page = await self._api.call("GET", f"/api/videos?{urlencode(parameters, doseq=True)}")
            for video in page["videos"]:
                yield video
            cursor = page["nextCursor"]

    async def newest(self) -> str:
        """Return the position of the newest event, for `events` after a listing of all videos."""
        page = await self._api.call("GET", f"/api/events?after={LATEST}")
        return str(page["nextAfter"])

    async def events(self, *, after: str = LATEST) -> AsyncGenerator[Event]:
        """Yield events in their order, each one once, without an end.

        Begins after the event with the id `after`, or with the oldest one of the last 30 days if
        that is empty. Outages are bridged as by other calls. Raises `PortalRefused` with the code
        `events_expired` if events may have been missed.
        """
        while True:
            query = urlencode({"after": after} if after else {})
            page = await self._api.call("GET", f"/api/events?{query}")
            for event in page["events"]:
                yield event
            after = page["nextAfter"]
            if page["events"]:
                continue
            async with aclosing(self._api.follow("/api/events/stream", after=after)) as messages:
                async for message in messages:
                    # Messages about progress have no id.
                    if "id" in message:
                        after = message["id"]
                        yield cast("Event", message)
            # The stream has ended, or there is none, so new events are listed.
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _import(self, body: dict[str, Any]) -> Video:
        url = (await self._api.call("POST", "/api/imports", body, key=uuid4().hex))["url"]
        progress: Any = {"stage": "importing"}
        while progress["stage"] == "importing":
            await asyncio.sleep(POLL_INTERVAL_S)
            progress = await self._api.call("GET", f"{url}/transcode")
        if progress["stage"] == "failed":
            raise PortalFailure(progress["failure"]["message"])
        created: Video = await self._api.call("GET", url)
        return created

    async def _category_ids(self, chosen: Sequence[str | int]) -> list[int]:
        categories = (await self._api.call("GET", "/api/categories"))["categories"]
        ids = {category["name"].casefold(): category["id"] for category in categories}
        ids |= {str(category["id"]): category["id"] for category in categories}
        names = [str(category) for category in chosen]
        if unknown := [name for name in names if name.casefold() not in ids]:
            table = "\n".join(f"  {each['id']:>3}  {each['name']}" for each in categories)
            raise PortalFailure(f"There is no category {unknown[0]!r}. Choose one of:\n{table}")
        return [ids[name.casefold()] for name in names]
