"""Words and pictures that viewers must not get, sought in every response that they can get.

A film has a word in each of its places. A viewer may read a word in certain stages of the video's
story, and in no response of the others: page, record, list, search, playlist, segment, picture,
file to save, and the headers of all of these.
"""

import html
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from uuid import UUID

import aiohttp
import pytest
from api_client import answered, metadata, presign
from cut_films import cut
from guarded_routes import routes
from passes import make_playable, tools_for
from playable_videos import LIFE, Cast
from quart import Quart
from secret_films import KEPT, Words, is_red, make_secret_film
from signed_in import Sender

from portal.config import Config
from portal.database.models import Version, Video, Visibility
from portal.database.work_models import Download
from portal.features import VERSION_HOOKS
from portal.features.captions import service as captions
from portal.features.cuts import service as cuts
from portal.features.downloads import service as downloads
from portal.features.replacement import service as replacement
from portal.films import passes, storyboards
from portal.http.auth import Policy
from portal.http.composition import WebContext
from portal.videos.visibility import VideoAccess, save_access

pytestmark = [
    pytest.mark.slow,
    pytest.mark.shared_app(downloads="all", default_visibility="private"),
]

# Stages in which viewers get the whole first film, at least its kept parts, and any film.
OF_WHOLE = frozenset(("public", "whole"))
OF_KEPT = OF_WHOLE | {"cut", "restored"}
OF_SECOND = frozenset(("replaced",))
OF_ANY = OF_KEPT | OF_SECOND
# Stages after a change, in which playback links are followed, too.
LINKED = frozenset(("cut", "replaced", "restored"))
FOR_VIEWERS = frozenset((Policy.ANYONE, Policy.SELF, Policy.WATCH, Policy.PLAY))
# Documented records, and lists of files: the only responses with the name of the uploaded file.
NAMING_FILES = re.compile(r"/api/videos(/[0-9a-f-]{36})?$|/downloads$")
EVENTS = "/api/events"
# Characters of an address in pages, JSON, playlists and captions.
ADDRESS = re.compile(r"""[^\s"'<>,()\\]+""")
# Pictures, and files to save.
PICTURE = re.compile(r"\.jpg|/downloads/[^/]+\.mp4")
FILE = re.compile(r"\.(m3u8|m4s|mp4|vtt|jpg)(\?|#|$)")


@dataclass
class Walk:
    """Responses that one viewer gets, headers included, from address to address of a video."""

    sender: Sender
    video_id: UUID
    config: Config
    responses: dict[str, bytes] = field(default_factory=dict)

    async def follow(self, addresses: Collection[str]) -> None:
        """Request these addresses, and those of the video in the responses."""
        waiting = list(addresses)
        async with aiohttp.ClientSession() as session:
            while waiting:
                address = waiting.pop()
                if address not in self.responses:
                    self.responses[address] = await self._read(address, session)
                    waiting += self._addresses_in(address)

    async def _read(self, address: str, session: aiohttp.ClientSession) -> bytes:
        if address.startswith("http"):
            async with session.get(address) as stored:
                assert stored.status == 200, address
                return f"{dict(stored.headers)}\n".encode() + await stored.read()
        response = await self.sender.get(address)
        assert response.status_code < 500 or address == "/readyz", address
        return f"{dict(response.headers)}\n".encode() + await response.get_data()

    def _addresses_in(self, address: str) -> list[str]:
        if urlsplit(address).path == EVENTS:
            # Viewers can finish a file that was replaced.
            return []
        text = html.unescape(self.responses[address].decode(errors="replace"))
        is_list = urlsplit(address).path.endswith((".m3u8", ".vtt"))
        video_id = str(self.video_id)
        words = [
            word
            for word in set(ADDRESS.findall(text))
            if video_id in word or (is_list and FILE.search(word))
        ]
        urls = [urljoin(address, word.removeprefix("URI=")).partition("#")[0] for word in words]
        paths = [each.removeprefix(self.config.public_url) for each in urls]
        # The uploaded file has all of its words. It is not offered to viewers of a cut video.
        return [
            each
            for each in paths
            if each.startswith(("/", f"{self.config.s3_public_endpoint_url}/"))
            and re.fullmatch(r"[\w/:.%-]+(\?\S*)?", each)
            and not each.endswith("/downloads/original")
        ]

    def places_of(self, all_words: Collection[Words], stage: str) -> dict[str, set[str]]:
        """Return the places whose words were read but not meant for this stage, with paths."""
        places: dict[str, set[str]] = {}
        for address, response in self.responses.items():
            path = urlsplit(address).path
            plain = response.lower()
            for words in all_words:
                for place, stages in words.stages.items():
                    if place == "filename" and path == EVENTS:
                        # Events have the record of their time.
                        is_allowed = stage in OF_ANY
                    else:
                        is_named = place != "filename" or NAMING_FILES.search(path)
                        is_allowed = stage in stages and is_named
                    # Some pages repeat the address that was asked for.
                    is_asked = words.at(place) in address
                    if not (is_allowed or is_asked) and is_in(plain, words.at(place)):
                        places.setdefault(f"{words.film} {place}", set()).add(path)
        return places

    def red_pictures(self) -> list[str]:
        """Return the paths of the pictures and segments with the colour of the removed part."""
        pictures = {address: b"" for address in self.responses if PICTURE.search(address)}
        for address, response in self.responses.items():
            init = b""
            lines = response.decode(errors="replace").splitlines()
            for line in lines if "#EXTM3U" in lines else ():
                uri = line.partition('URI="')[2].partition('"')[0] or line
                if line.startswith("#EXT-X-MAP"):
                    init = self.file_at(urljoin(address, uri))
                elif ".m4s" in uri and "/audio" not in urljoin(address, uri):
                    pictures[urljoin(address, uri)] = init
        return [
            urlsplit(address).path
            for address, init in pictures.items()
            if (content := self.file_at(address)) and is_red(init + content)
        ]

    def file_at(self, address: str) -> bytes:
        """Return the file in storage to which an address leads; empty if it is not served."""
        response = self.responses.get(address.removeprefix(self.config.public_url), b"")
        head, _, body = response.partition(b"}\n")
        if address.startswith(f"{self.config.s3_public_endpoint_url}/"):
            return body
        location = re.search(rb"'Location': '([^']+)'", head)
        return self.file_at(location[1].decode()) if location else b""


def is_in(response: bytes, word: str) -> bool:
    """Return whether a response has a word, in one of the encodings of films and texts."""
    return any(word.encode(name) in response for name in ("utf-8", "utf-16-be", "utf-16-le"))


@dataclass
class Story:
    """Video whose file, cut and audience change, and what its viewers get in each stage."""

    app: Quart
    resources: WebContext
    cast: Cast
    folder: Path
    first: Words = field(default_factory=lambda: Words("first"))
    second: Words = field(default_factory=lambda: Words("second"))
    texts: Words = field(default_factory=lambda: Words("texts"))
    # Addresses that viewers got before.
    former: set[str] = field(default_factory=set)
    video_id: UUID = field(init=False)
    link: str = field(init=False)

    @property
    def editor(self) -> Sender:
        return self.cast.senders["its editor"][0]

    async def publish(self) -> None:
        """Publish the first film with its texts and captions, and run its jobs."""
        film = make_secret_film(self.folder, self.first, of_kept=OF_KEPT, whole=OF_WHOLE)
        body = metadata(
            await self.upload(film),
            fileName=film.name,
            title=f"About {self.texts.new('title', OF_ANY)}",
            description=f"With {self.texts.new('description', OF_ANY)}",
            tags=self.texts.new("tag", OF_ANY),
        )
        record = await answered(await self.editor.post("/api/videos", json=body), 201)
        self.video_id = UUID(record["id"])
        await make_playable(await self.video(), self.resources, self.folder)
        await self.run_jobs()
        caption = self.texts.new("captionkept", OF_ANY)
        removed = self.texts.new("captionremoved", OF_WHOLE)
        cues = f"00:01.000 --> 00:02.000\n{caption}\n\n00:05.000 --> 00:06.000\n{removed}\n"
        address = f"/api/videos/{self.video_id}"
        response = await self.editor.post(
            f"{address}/captions?language=fr",
            data=f"WEBVTT\n\n{cues}",
            headers={"Content-Type": "text/vtt"},
        )
        await answered(response, 201)
        made = await self.editor.post(f"{address}/playback-links", json=LIFE)
        self.link = urlsplit((await answered(made, 201))["embedUrl"]).path.partition("/embed/")[0]

    async def upload(self, film: Path) -> str:
        key = (await presign(self.editor))["key"]
        await self.resources.storage.put(key, film, content_type="video/mp4")
        return key

    async def video(self) -> Video:
        return await Video.get(id=self.video_id)

    async def show(self, visibility: Visibility) -> None:
        await save_access(self.video_id, VideoAccess(visibility=visibility), versions=None)

    async def cut(self) -> None:
        await cut(await self.video(), self.resources, self.folder, *KEPT)

    async def show_whole_film(self) -> None:
        await cuts.save(self.video_id, None, expected=None, hooks=VERSION_HOOKS)

    async def begin_replacement(self) -> None:
        """Upload the second film, which waits for a worker."""
        film = make_secret_film(self.folder, self.second, of_kept=OF_SECOND, whole=OF_SECOND)
        key = await self.upload(film)
        await replacement.request(
            self.video_id,
            key=key,
            file_name=film.name,
            storage=self.resources.storage,
            max_source_bytes=0,
            owner_id=self.cast.editor.id,
        )

    async def finish_replacement(self) -> None:
        version = await Version.get(video_id=self.video_id, status="processing")
        tools = tools_for(self.resources, self.folder)
        await passes.publish_version(version.id, tools, may_encode=True, hooks=VERSION_HOOKS)

    async def undo_replacement(self) -> None:
        storage = self.resources.storage
        await replacement.withdraw(self.video_id, storage=storage, hooks=VERSION_HOOKS)

    async def run_jobs(self) -> None:
        """Run the jobs of a playable video: renditions, storyboard, captions, files to save."""
        resources = self.resources
        tools = tools_for(resources, self.folder)
        version_id = (await self.video()).version_id
        while (await self.video()).complete_job_id is not None:
            await passes.complete_ladder(version_id, tools)
        await storyboards.make(version_id, tools)
        await captions.store(self.video_id, tools_for(resources))
        for row in await Download.filter(video_id=self.video_id):
            await downloads.make_file(self.video_id, row.id, tools)

    def paths(self) -> list[str]:
        """Return the addresses that every viewer may request."""
        listed = [route for route in routes(self.app) if route.policy in FOR_VIEWERS]
        paths = {route.path(str(self.video_id)) for route in listed if route.method == "GET"}
        public_url = self.resources.config.public_url
        queries = [
            "/?sort=title",
            "/api/videos?include=passthrough,transcode",
            f"{EVENTS}?limit=200",
            f"/library/progress?id={self.video_id}",
            *(f"/oembed?url={public_url}/{kind}/{self.video_id}" for kind in ("videos", "embed")),
        ]
        return [*paths, *queries]

    async def check(self, stage: str) -> Walk:
        """Check all responses to each viewer in a stage; return those to an anonymous one."""
        await self.run_jobs()
        for name in ("nobody",) if stage in OF_ANY else ("nobody", "viewer"):
            sender = self.cast.senders[name][0]
            await self.request_files(sender)
            walk = await self.walk(stage, sender, [*self.paths(), *self.former])
            await self.check_searches(stage, sender)
        if stage in LINKED:
            await self.walk(stage, walk.sender, [f"{self.link}{path}" for path in self.paths()])
        self.former |= {path for path in walk.responses if path.startswith("/")}
        return walk

    async def walk(self, stage: str, sender: Sender, addresses: Collection[str]) -> Walk:
        walk = Walk(sender, self.video_id, self.resources.config)
        await walk.follow(addresses)
        places = walk.places_of((self.first, self.second, self.texts), stage)
        assert places == {}, stage
        return walk

    async def request_files(self, sender: Sender) -> None:
        """Have all files made that a viewer may save."""
        address = f"/api/videos/{self.video_id}/downloads"
        response = await sender.get(address)
        if response.status_code == 200:
            for file in (await answered(response))["downloads"]:
                if file["kind"] in ("video", "sound"):
                    assert (await sender.post(f"{address}/{file['name']}")).status_code < 300
            await self.run_jobs()

    async def check_searches(self, stage: str, sender: Sender) -> None:
        """Check that no search tells a viewer that a hidden word is there."""
        for words in (self.first, self.second, self.texts):
            for place, stages in words.stages.items():
                if stage in stages:
                    continue
                for path in ("/", "/api/videos"):
                    response = await sender.get(f"{path}?q={words.at(place)}")
                    assert not is_in(await response.get_data(), str(self.video_id)), (stage, place)


async def test_viewers_get_no_word_and_no_picture_that_is_not_for_them(
    app: Quart, resources: WebContext, cast: Cast, tmp_path: Path
) -> None:
    story = Story(app, resources, cast, tmp_path)
    await story.publish()
    await story.check("private")
    await story.show(Visibility.PUBLIC)
    walk = await story.check("public")
    # Whatever may be read is found, and so is the removed part.
    readable = walk.places_of((story.first, story.texts), stage="none").keys()
    for words in (story.first, story.texts):
        for place, stages in words.stages.items():
            assert "public" not in stages or f"{words.film} {place}" in readable
    assert walk.red_pictures()

    await story.cut()
    walk = await story.check("cut")
    assert walk.red_pictures() == []
    await story.begin_replacement()
    await story.check("cut")
    await story.finish_replacement()
    # Viewers can finish the former film, and the second one once that is withdrawn.
    story.former.clear()
    await story.check("replaced")
    await story.undo_replacement()
    story.former.clear()
    walk = await story.check("restored")
    assert walk.red_pictures() == []
    await story.show_whole_film()
    await story.check("whole")
    await story.show(Visibility.PRIVATE)
    await story.check("private")
