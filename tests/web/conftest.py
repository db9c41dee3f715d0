"""Who asks, in the tests of what the portal answers."""

import pytest
from api_client import Client, published
from quart import Quart
from signed_in import OWN_PAGE, Sender, signed_in
from video_output import MASTER, MEDIA, READY, Output

from portal.database.account_models import Account
from portal.web.composition import WebContext


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
async def unpublished(client: Client, resources: WebContext) -> Output:
    """The output of a video that is still processed."""
    output = Output(resources, (await published(client))["id"])
    await output.put(f"{output.folder}/master.m3u8", MASTER)
    await output.put(f"{output.folder}/low/media.m3u8", MEDIA)
    return output


@pytest.fixture
async def output(unpublished: Output) -> Output:
    """The output of a video that is ready."""
    await unpublished.change(READY)
    return unpublished
