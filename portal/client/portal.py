"""`Portal`: publishing, waiting, lists and events by a portal's public JSON API."""

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

# Where there are no streams.
POLL_INTERVAL_S = 1.0
LATEST = "latest"
CONTENT_TYPES = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".qt": "video/quicktime",
}


class Video(TypedDict):
    """A video's record, with the portal's names."""

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
    # Empty until the video is ready; not in the record of its creation.
    playbackUrl: NotRequired[str]


class Event(TypedDict):
    """Event of a video or of an import.

    `data` is the video's record at that time; of a deleted video only its id, and of a failed
    import its id and `failure`.
    """

    id: str
    type: str
    timestamp: str
    sequence: int
    data: Video


class VideoFailed(PortalFailure):
    """The video could not be converted; its page says why."""

    def __init__(self, video: Video) -> None:
        super().__init__(self.__doc__)
        self.video = video


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes) -> Event:
    """The event of a webhook's request, once it is sure that the portal has sent it.

    `secret` is that of the webhook (`whsec_…`). Raises `PortalFailure` for anyone else's request,
    and for one that is older than five minutes.
    """
    try:
        event: Event = Webhook(secret).verify(body, dict(headers))
    except (WebhookVerificationError, ValueError) as exc:
        raise PortalFailure(f"This webhook's request is not the portal's: {exc}") from exc
    return event


class Portal:
    """A portal, by its address and an API token if it has accounts; for `async with`.

    Every call is repeated while the portal is busy or away, up to 15 s, and may safely be repeated
    after that. All of them raise `PortalFailure`: `PortalRefused` or `PortalUnreachable`.
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
        """The address of a video's page."""
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
        """Upload a file and create its video; a repetition sends only what has not arrived.

        A text is the https address of a file that the portal fetches; this waits until it has.
        `categories` are names or ids; the title is the file's name unless given. Without a
        `visibility` the portal's setting decides who may see the video. `on_sent` is called with
        the bytes that have arrived, and those of the whole file.
        """
        file = Path(URL(source).name) if isinstance(source, str) else source
        content_type = CONTENT_TYPES.get(file.suffix.lower(), "")
        if source is file and not content_type:
            known = ", ".join(CONTENT_TYPES)
            raise PortalFailure(f"{file.name}: only {known} files can be published.")
        body = {
            "title": title or file.stem or str(source),
            "description": description,
            "categoryIds": await self._category_ids(categories),
            "tags": tags,
        }
        if isinstance(source, str):
            return await self._import({**body, "url": source, "visibility": visibility})
        wanted = {"fileName": file.name, "contentType": content_type}
        upload = await self._api.call("POST", "/api/videos/presign", wanted)
        await send_file(self._api, file, upload["key"], on_sent=on_sent)
        body |= {"fileName": file.name, "key": upload["key"]}
        query = f"?{urlencode({'visibility': visibility})}" if visibility else ""
        created: Video = await self._api.call("POST", f"/api/videos{query}", body)
        return created

    async def wait(self, video_id: str) -> Video:
        """The record of a video once it is ready. Raises `VideoFailed`."""
        path = f"/api/videos/{video_id}"
        while True:
            video: Video = await self._api.call("GET", path)
            if video["status"] == "ready":
                return video
            if video["status"] == "failed":
                raise VideoFailed(video)
            async with aclosing(self._api.follow(f"{path}/events")) as messages:
                async for message in messages:
                    # Of an event it is inside; progress has none.
                    record = message.get("data", message)
                    if record.get("status", "processing") != "processing":
                        break
                else:
                    await asyncio.sleep(POLL_INTERVAL_S)

    async def videos(self, **query: Any) -> AsyncGenerator[Video]:
        """All videos that match, page by page; the query is that of GET /api/videos.

        Such as `status="ready"` or `createdAfter="2026-01-31T12:00:00Z"`; lists are taken, too.
        """
        cursor: str | None = ""
        while cursor is not None:
            asked = {**query, "cursor": cursor} if cursor else query
            page = await self._api.call("GET", f"/api/videos?{urlencode(asked, doseq=True)}")
            for video in page["videos"]:
                yield video
            cursor = page["nextCursor"]

    async def newest(self) -> str:
        """Where `events` goes on with what is yet to happen, for who lists everything first."""
        page = await self._api.call("GET", f"/api/events?after={LATEST}")
        return str(page["nextAfter"])

    async def events(self, *, after: str = LATEST) -> AsyncGenerator[Event]:
        """What happens to videos, in its order, each once, and without an end.

        It goes on after the event with this id; "" begins with the oldest of the last 30 days.
        Outages are waited for as with any call. `PortalRefused` with the code `events_expired` says
        that some may have been missed.
        """
        while True:
            asked = urlencode({"after": after} if after else {})
            page = await self._api.call("GET", f"/api/events?{asked}")
            for event in page["events"]:
                yield event
            after = page["nextAfter"]
            if page["events"]:
                continue
            async with aclosing(self._api.follow("/api/events/stream", after=after)) as messages:
                async for message in messages:
                    # Progress has no id.
                    if "id" in message:
                        after = message["id"]
                        yield cast("Event", message)
            # The stream has ended, or there is none: what is new is listed.
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _import(self, body: dict[str, Any]) -> Video:
        begun = await self._api.call("POST", "/api/imports", body, key=uuid4().hex)
        told: Any = {"stage": "importing"}
        while told["stage"] == "importing":
            await asyncio.sleep(POLL_INTERVAL_S)
            told = await self._api.call("GET", f"{begun['url']}/transcode")
        if told["stage"] == "failed":
            raise PortalFailure(told["failure"]["message"])
        created: Video = await self._api.call("GET", begun["url"])
        return created

    async def _category_ids(self, wanted: Sequence[str | int]) -> list[int]:
        known = (await self._api.call("GET", "/api/categories"))["categories"]
        by_name = {category["name"].casefold(): category["id"] for category in known}
        by_id = {str(category["id"]): category["id"] for category in known}
        ids = []
        for name in map(str, wanted):
            found = by_id.get(name) or by_name.get(name.casefold())
            if found is None:
                names = "\n".join(f"  {it['id']:>3}  {it['name']}" for it in known)
                raise PortalFailure(f"There is no category {name!r}. Choose one of:\n{names}")
            ids.append(found)
        return ids
