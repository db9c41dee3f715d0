"""Fixtures: a PostgreSQL and an S3 server for the session, and a database for each test."""

import asyncio
import compileall
import gc
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache, wraps
from inspect import iscoroutinefunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import botocore.session
import pytest
from front_end import in_turn
from hypothesis import HealthCheck, settings
from playable_videos import Cast, make_cast
from quart import Quart
from quart.typing import TestClientProtocol
from running_portal import (
    IMPRINT,
    LivePortal,
    fresh_database,
    fresh_portal,
    make_video,
    migrated_services,
    run_portal,
)
from signed_in import CREDENTIALS, OWN_PAGE, Sender, as_new, make_account, one_app, signed_in
from speech import Speech, install_speech

import portal
from portal.bundled.data_folder import database_account
from portal.config import Config
from portal.database.account_models import Account, Role
from portal.http.composition import WebContext
from portal.web.app import create_app

# Memory that a database server needs with its log.
MEMORY_NEEDED_BYTES = 2 * 1024**3

# Examples are the same in every run and have no time limit.
settings.register_profile(
    "tests",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
# Every app has its own session, which would otherwise parse S3's model again.
botocore.session.create_loader = cache(botocore.session.create_loader)


def pytest_configure() -> None:
    """Compile the package, because confined children would compile their modules each time."""
    compileall.compile_dir(Path(portal.__file__).parent, quiet=1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Limit the time of an asynchronous test, so that the failure shows what it waits for.

    The limit is half of `faulthandler_timeout`, which shows stacks of threads alone.
    """
    if isinstance(item, pytest.Function) and iscoroutinefunction(item.obj):
        limit_s = float(item.config.getini("faulthandler_timeout")) / 2
        item.obj = _with_limit(item.obj, limit_s)


def _with_limit(
    test: Callable[..., Coroutine[Any, Any, None]], limit_s: float
) -> Callable[..., Coroutine[Any, Any, None]]:
    @wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(limit_s or None):
            await test(*args, **kwargs)

    return limited


def pytest_collection_finish() -> None:
    """Exclude the objects that all tests share from garbage collections, which would be slow."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
async def services() -> AsyncIterator[dict[str, str]]:
    """Run PostgreSQL and an S3 server; yields their environment variables.

    Their data is outside pytest's temporary folder: each run closes that folder to other users, and
    PostgreSQL runs as another user when root runs the tests.
    """
    with in_turn():
        # Created here if root runs the tests.
        database_account()
    # Copying a database takes 15 ms in memory, and 300 ms or more on a disk.
    memory = Path("/dev/shm")  # noqa: S108  # the names of files there can't be guessed
    fits_in_memory = memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_NEEDED_BYTES
    with (
        TemporaryDirectory(
            prefix="portal-test-", dir=memory if fits_in_memory else None
        ) as data_dir,
        TemporaryDirectory(prefix="portal-test-objects-") as objects,
    ):
        (Path(data_dir) / "objects").symlink_to(objects)
        async with migrated_services(Path(data_dir), durable=False) as environ:
            yield environ


@pytest.fixture
async def environ(services: dict[str, str], tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Settings of one test, with a separate database and the shared bucket."""
    async with fresh_database(services) as environ:
        yield {**environ, "WORK_DIR": str(tmp_path / "work")}


@pytest.fixture
def config(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Config:
    """Parsed settings; the credentials are in the environment, where botocore reads them."""
    for name in CREDENTIALS:
        monkeypatch.setenv(name, environ[name])
    return Config.from_env(environ)


@pytest.fixture
async def own_app(config: Config) -> AsyncIterator[Quart]:
    """An app for one test."""
    app = create_app(config)
    async with app.test_app():
        yield app


@pytest.fixture(scope="module")
async def shared_app(
    request: pytest.FixtureRequest, services: dict[str, str]
) -> AsyncIterator[Quart]:
    """App for all tests of a file, with the settings of its mark `shared_app`."""
    mark = request.node.get_closest_marker("shared_app")
    async with one_app(services, **(mark.kwargs if mark else {})) as app:
        yield app


@pytest.fixture
async def renewed_app(shared_app: Quart) -> AsyncIterator[Quart]:
    """The app of the file, emptied for this test."""
    async with as_new(shared_app) as app:
        yield app


@pytest.fixture
def app(request: pytest.FixtureRequest) -> Quart:
    """Started app in this process: the file's if it has the mark `shared_app`."""
    is_shared = request.node.get_closest_marker("shared_app")
    app: Quart = request.getfixturevalue("renewed_app" if is_shared else "own_app")
    return app


@pytest.fixture
def client(app: Quart) -> TestClientProtocol:
    """Client of the app in this process."""
    return app.test_client()


@pytest.fixture
def resources(app: Quart) -> WebContext:
    """The connections of the started app."""
    return app.extensions["portal"]


@pytest.fixture
async def olga(app: Quart) -> Account:
    """Account of the owner."""
    return await make_account("olga")


@pytest.fixture
async def edith(olga: Account) -> Account:
    """Account of an editor."""
    return await make_account("edith", Role.EDITOR)


@pytest.fixture
async def cast(app: Quart) -> Cast:
    """Senders of each role, and the editor who publishes."""
    return await make_cast(app)


@pytest.fixture(scope="session")
async def live_portal(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LivePortal]:
    """Running portal for all tests that only add videos."""
    settings = {
        "WORK_DIR": str(tmp_path_factory.mktemp("work")),
        "SITE_LINKS": f"Imprint {IMPRINT}",
    }
    async with fresh_portal(services, worker=True, **settings) as portal:
        yield portal


@pytest.fixture
async def web(environ: dict[str, str]) -> AsyncIterator[LivePortal]:
    """Portal without a worker, for tests that start and kill their own."""
    async with run_portal(environ, worker=False) as portal:
        yield portal


@pytest.fixture(scope="session")
def short_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of 320x180 with sound."""
    return make_video(tmp_path_factory.mktemp("media") / "short.mp4")


@pytest.fixture(scope="session")
def speech(pytestconfig: pytest.Config) -> Speech:
    """Speech model and voice, kept in pytest's cache."""
    assert pytestconfig.cache is not None
    return install_speech(pytestconfig.cache.mkdir("speech"))


@pytest.fixture(scope="session")
def slow_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight seconds that must be encoded, long enough to open a page before the video is ready."""
    return make_video(
        tmp_path_factory.mktemp("media") / "slow.mp4", seconds=8, size="640x360", copyable=False
    )


@pytest.fixture(scope="session")
def long_video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty busy seconds, so that their transcoding can be interrupted."""
    return make_video(
        tmp_path_factory.mktemp("media") / "long.mp4", seconds=20, size="1280x720", copyable=False
    )


@pytest.fixture
def anyone(app: Quart) -> Sender:
    """A browser in which nobody is signed in."""
    return Sender(app, OWN_PAGE)


@pytest.fixture
def here(app: Quart) -> Sender:
    """A browser on the portal's own machine."""
    return Sender(app, OWN_PAGE, address="127.0.0.1")


@pytest.fixture
async def owner(app: Quart, olga: Account) -> Sender:
    """A browser in which the owner is signed in."""
    return await signed_in(app, olga)


@pytest.fixture
async def editor(app: Quart, edith: Account) -> Sender:
    """A browser in which an editor is signed in."""
    return await signed_in(app, edith)
