"""Workers are killed at each step of a cut and of a replacement.

Viewers get the old or the new version, never a mixture, and no file is left that no playlist names.
"""

import asyncio
import posixpath
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from api_client import Client, presign, run_sql
from chaos import DEAD, is_settled
from cut_films import whole_video
from numbered_film import make_numbered
from running_portal import SLOWDOWN, make_video, process, until
from stored_objects import stored

from portal.config import Config
from portal.database.connection import server_time
from portal.database.models import Rendition, RenditionState, Version, Video, VideoStatus
from portal.features import VERSION_HOOKS
from portal.features.cuts import service as cuts
from portal.features.replacement import service as replacement
from portal.http.composition import WebContext
from portal.maintenance import janitor
from portal.maintenance.video_files import find_defects
from portal.storage.objects import output_root
from portal.transcoding.encoding.pictures import POSTER_NAME
from portal.transcoding.encoding.sound_samples import WAVEFORM_NAME
from portal.transcoding.packaging.hls import IFRAME_PLAYLIST_NAME, PLAYLIST_NAME, playlist_uris
from portal.transcoding.packaging.master import MASTER_NAME
from portal.transcoding.planning.kept import Interval
from portal.transcoding.planning.storyboard import SPRITE_LINE, STORYBOARD_NAME

# A worker that dies after its step: a function of renditions, or a file that it has stored.
DYING = """
import os, signal, sys
from functools import wraps
from portal.cli.main import main
from portal.films import cutting, renditions
from portal.storage.bucket import Storage

# Every cut needs a later pass.
cutting._TOGETHER_S = 0
kind, name = sys.argv[1:]

def dying(function, is_step):
    @wraps(function)
    async def dies(*args, **options):
        await function(*args, **options)
        if is_step(*args):
            os.kill(os.getpid(), signal.SIGKILL)
    return dies

if kind == "stored":
    Storage.put = dying(Storage.put, lambda storage, key, *_: key.endswith(name))
else:
    setattr(renditions, name, dying(getattr(renditions, name), lambda *_: True))
main(["worker"])
"""
# Attempts of dead workers don't count.
FORGIVEN = f"{DEAD} UPDATE versions SET forgiven_attempts = 100 WHERE status = 'processing'"
CUT_STEPS = (
    ("stored", ".m4s"),
    ("stored", MASTER_NAME),
    ("recorded", "publish"),
    ("recorded", "add"),
)
REPLACEMENT_STEPS = (("stored", MASTER_NAME), ("recorded", "publish"))


@dataclass(frozen=True)
class Watched:
    """Video of which workers make another version, and die."""

    id: UUID
    resources: WebContext
    environ: dict[str, str]

    async def make_version(self, steps: Sequence[tuple[str, str]]) -> None:
        """Make a version with workers of which one dies at each step, and check what is live."""
        former = (await Video.get(id=self.id)).version_id
        has_published = False
        for kind, name in steps:
            await self.die(kind, name)
            has_published = has_published or name == "publish"
            video = await Video.get(id=self.id)
            assert (video.version_id != former) == has_published, name
            assert await find_defects(self.id, self.resources.storage) == [], name
        async with process("worker", self.environ):
            await until(partial(is_settled, self.environ["DATABASE_URL"]), timeout_s=60)
        assert await find_defects(self.id, self.resources.storage) == []
        states = await Rendition.filter(version__video_id=self.id).values_list("state", flat=True)
        assert set(states) == {RenditionState.COMPLETE}

    async def die(self, kind: str, name: str) -> None:
        """Run a worker until it dies after a step."""
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", DYING, kind, name), env=self.environ
        )
        try:
            await asyncio.wait_for(worker.wait(), 60 * SLOWDOWN)
        finally:
            if worker.returncode is None:
                worker.kill()
        assert worker.returncode == -signal.SIGKILL
        # The next worker begins with the recovery of this one's job.
        await run_sql(self.environ["DATABASE_URL"], FORGIVEN)

    async def named_files(self) -> set[str]:
        """Return the files that the video's ready versions may have, below its folder."""
        names: set[str] = set()
        for version in await Version.filter(video_id=self.id, status=VideoStatus.READY):
            folder = f"{version.published_attempt}/"
            sprites = SPRITE_LINE.finditer(await self.read(folder + STORYBOARD_NAME))
            names |= {folder + sprite["name"] for sprite in sprites}
            file_names = (MASTER_NAME, STORYBOARD_NAME, POSTER_NAME, WAVEFORM_NAME)
            names |= {folder + name for name in file_names}
            for row in await Rendition.filter(version_id=version.id):
                folder = f"{row.attempt_number}/{row.name}/"
                names |= {folder + PLAYLIST_NAME, folder + IFRAME_PLAYLIST_NAME}
                uris = playlist_uris(await self.read(folder + PLAYLIST_NAME))
                names |= {posixpath.normpath(folder + uri) for uri in uris}
        return names

    async def read(self, name: str) -> str:
        """Return a text of the video, by its name below the video's folder."""
        return (await self.resources.storage.get(output_root(self.id) + name)).decode()


async def test_old_or_new_version_is_live_whenever_a_worker_dies(
    client: Client,
    resources: WebContext,
    environ: dict[str, str],
    config: Config,
    tmp_path: Path,
) -> None:
    film = make_numbered(tmp_path / "film.mp4", "-g", "999", seconds=6, size="544x306")
    whole = await whole_video(client, resources, film, tmp_path)
    video = Watched(whole.id, resources, environ)
    await cuts.save(video.id, [Interval(1.0, 5.0)], expected=None, hooks=VERSION_HOOKS)
    await video.make_version(CUT_STEPS)

    key = (await presign(client))["key"]
    other = make_video(tmp_path / "other.mp4", copyable=False)
    await resources.storage.put(key, other, content_type="video/mp4")
    await replacement.request(
        video.id,
        key=key,
        file_name="other.mp4",
        storage=resources.storage,
        max_source_bytes=0,
        owner_id=None,
    )
    await video.make_version(REPLACEMENT_STEPS)

    later = await server_time() + timedelta(days=2)
    await janitor.tidy(config, storage=resources.storage, now=later)
    root = output_root(video.id)
    names = {key.removeprefix(root) for key in await stored(resources.storage, video.id)}
    assert names - await video.named_files() == set()
