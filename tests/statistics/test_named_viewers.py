"""Viewers whose names are known: kept with `VIEWER_NAMES=on` alone, for the video's editors."""

import csv
import io
import re
from typing import Any

import pytest
from api_client import answered, faults, problem
from page_texts import page, words_of
from player_reports import film, played, report
from quart import Quart
from signed_in import Sender, configure, make_account, person, signed_in, text_of

from portal.accounts import guests, people
from portal.accounts.permissions import EVERYONES
from portal.accounts.tokens import digest, new_secret
from portal.database.account_models import Account, Guest, Role
from portal.database.connection import execute, fetch_rows
from portal.database.models import Video, Visibility
from portal.features.statistics import FEATURE, folding
from portal.features.statistics.api import Intake
from portal.features.statistics.folding import fold_inbox
from portal.features.statistics.intake import write_reports
from portal.http.composition import DataLoader, WebContext
from portal.http.cookies import GUESTS
from portal.videos import playback_links
from portal.videos.playback_links import Viewer
from portal.videos.reading import fetch_states

pytestmark = pytest.mark.shared_app(viewer_names=True)

NOTE = "Your name and what you watch are shown to the editors of this video."
LEARNER = Viewer("4711", "Lena Lehmann")
STORED = "SELECT * FROM named_viewers"
AGE = "UPDATE named_viewers SET last_at = last_at - make_interval(days => %s)"
ADMIT = "UPDATE publications SET admitted_ids = ARRAY[%s] WHERE id = %s"
# Viewers on two pages, one of whom looks like a formula.
ADD_VIEWERS = """
INSERT INTO named_viewers (video_id, viewer, label, first_at, last_at, watch_ms, seen)
SELECT %s, 'external:' || number,
       CASE number WHEN 100 THEN '-2+3'
                   ELSE CASE number %% 2 WHEN 0 THEN 'L' ELSE 'l' END || 'earner ' || number END,
       now(), now(), 1000, (repeat('1', 50) || repeat('0', 50))::bit(100)
FROM generate_series(100, 300) AS number
"""


@pytest.fixture(autouse=True)
def without_pauses(app: Quart) -> None:
    """Let each report be written at once."""
    taking = app.extensions["portal"].shared(Intake)
    taking.videos = DataLoader(fetch_states)
    taking.writes = DataLoader(write_reports)


async def base_of(video: Video, resources: WebContext, viewer: Viewer = LEARNER) -> str:
    """Return the beginning of the addresses of a viewer's playback link."""
    link = await playback_links.make(video.id, life_s=600, by=EVERYONES, viewer=viewer)
    return f"/p/{await link.token(resources.signing_keys)}"


async def viewers_of(video: Video, editor: Sender, query: str = "") -> list[dict[str, Any]]:
    """Fold the inbox, and return the named viewers of a video."""
    while await fold_inbox():
        pass
    body = await answered(await editor.get(f"/api/videos/{video.id}/viewers{query}"))
    viewers: list[dict[str, Any]] = body["viewers"]
    return viewers


async def test_viewer_of_a_link_has_watched_the_union_of_the_reports_once(
    editor: Sender, edith: Account, anyone: Sender, resources: WebContext
) -> None:
    video = await film(edith)
    base = await base_of(video, resources)
    first = played(video.id, 0, 40)
    for _ in range(2):
        await report(anyone, first, base=base)
        await fold_inbox()
    await report(anyone, played(video.id, 20, 60), base=base, User_Agent="Chrome on a phone")
    [viewer] = await viewers_of(video, editor)
    assert viewer["firstAt"] <= viewer["lastAt"]
    assert {name: viewer[name] for name in viewer.keys() - {"firstAt", "lastAt"}} == {
        "kind": "external",
        "id": "4711",
        "label": "Lena Lehmann",
        "watchSeconds": 80,
        "share": 0.6,
        "isCompleted": False,
    }
    renamed = await base_of(video, resources, Viewer("4711", "Lena Lang"))
    await report(anyone, played(video.id, 60, 95), base=renamed)
    [viewer] = await viewers_of(video, editor)
    assert (viewer["label"], viewer["share"], viewer["isCompleted"]) == ("Lena Lang", 0.95, True)


async def guest_of(video: Video, app: Quart) -> Sender:
    """Return the browser of a guest with whom the video is shared."""
    link = await guests.invite("gina@example.org")
    secret = new_secret()
    await Guest.filter(id=link.id).update(session_digest=digest(secret))
    await execute(ADMIT, link.id, video.id)
    return Sender(app, {"Cookie": f"{GUESTS.plain_name}={secret}"})


async def test_people_and_guests_are_named_and_told_so(
    app: Quart, editor: Sender, edith: Account, anyone: Sender, resources: WebContext
) -> None:
    video = await film(edith)
    account = await make_account("vera", Role.VIEWER)
    vera = await signed_in(app, account)
    gina = await guest_of(video, app)
    base = await base_of(video, resources)
    pages = [
        (vera, f"/videos/{video.id}"),
        (gina, f"/embed/{video.id}"),
        (anyone, f"{base}/embed/{video.id}"),
    ]
    for sender, path in pages:
        assert NOTE in words_of(await page(sender, path))
    opted_out = await vera.get(f"/videos/{video.id}", headers={"Sec-GPC": "1"})
    assert NOTE not in await text_of(opted_out)
    for sender in (editor, anyone):
        assert NOTE not in await page(sender, f"/videos/{video.id}")
    for sender in (vera, gina, anyone):
        await report(sender, played(video.id, 0, 50))
    viewers = await viewers_of(video, editor)
    names = [(viewer["kind"], viewer["id"], viewer["label"]) for viewer in viewers]
    email = "gina@example.org"
    assert names == [("guest", email, email), ("account", account.email, account.email)]
    await Account.filter(id=account.id).update(name="Vera Vogel")
    assert (await viewers_of(video, editor))[1]["label"] == "Vera Vogel"
    # The account is removed between the report and the fold, too.
    await report(vera, played(video.id, 50, 90))
    await report(gina, played(video.id, 50, 90))
    await people.remove(account.id, by=person(await Account.get(email="olga@example.org")))
    [viewer] = await viewers_of(video, editor)
    assert (viewer["id"], viewer["share"]) == (email, 0.9)


async def test_names_are_not_stored_while_the_setting_is_off(
    app: Quart, editor: Sender, edith: Account, anyone: Sender, resources: WebContext
) -> None:
    video = await film(edith)
    vera = await signed_in(app, await make_account("vera", Role.VIEWER))
    base = await base_of(video, resources)
    await report(vera, played(video.id, 0, 50))
    await fold_inbox()
    configure(app, viewer_names=False)
    await report(anyone, played(video.id, 0, 50), base=base)
    await report(await guest_of(video, app), played(video.id, 0, 50))
    assert await fold_inbox() == 2
    # Names from before are hidden at once, and removed by the janitor.
    assert len(await fetch_rows(STORED)) == 1
    await problem(await editor.get(f"/api/videos/{video.id}/viewers"), 404, "not_found")
    assert (await editor.get(f"/videos/{video.id}/viewers.csv")).status_code == 404
    assert "Who watched" not in await page(editor, f"/videos/{video.id}/statistics")
    assert NOTE not in await page(anyone, f"{base}/embed/{video.id}")
    await FEATURE.enforce_settings(app.extensions["portal"].config)
    assert await fetch_rows(STORED) == []
    statistics = await answered(await editor.get(f"/api/videos/{video.id}/statistics"))
    assert statistics["viewers"] == 3


async def test_list_is_ordered_by_label_and_has_pages(editor: Sender, edith: Account) -> None:
    video = await film(edith)
    await execute(ADD_VIEWERS, video.id)
    path = f"/api/videos/{video.id}/viewers"
    first = await editor.get(path)
    body = await answered(first)
    second = await answered(await editor.get(f"{path}?after={body['nextCursor']}"))
    labels = [viewer["label"] for viewer in body["viewers"] + second["viewers"]]
    assert labels == ["-2+3", *(f"{'Ll'[number % 2]}earner {number}" for number in range(101, 301))]
    assert f'<{path}?after={body["nextCursor"]}>; rel="next"' == first.headers["Link"]
    assert second["nextCursor"] is None
    assert set(await faults(await editor.get(f"{path}?after=x"))) == {"/after"}
    statistics = f"/videos/{video.id}/statistics"
    text = await page(editor, statistics)
    [following] = re.findall(r"viewers=(\d+)[^>]*rel=.next", text, re.DOTALL)
    assert "Learner 300" in await page(editor, f"{statistics}?viewers={following}")
    file = await editor.get(f"/videos/{video.id}/viewers.csv")
    rows = list(csv.DictReader(io.StringIO((await text_of(file)).removeprefix("\ufeff"))))
    assert len(rows) == 201
    assert (rows[0]["label"], rows[0]["share"]) == ("'-2+3", "0.5")


async def test_only_editors_of_the_video_learn_who_watched(
    app: Quart, edith: Account, anyone: Sender
) -> None:
    video = await film(edith)
    private = await film(edith, visibility=Visibility.PRIVATE)
    vera = await signed_in(app, await make_account("vera", Role.VIEWER))
    eric = await signed_in(app, await make_account("eric", Role.EDITOR))
    for path in ("/api/videos/{}/viewers", "/videos/{}/viewers.csv"):
        for sender, status in ((vera, 403), (eric, 403)):
            assert (await sender.get(path.format(video.id))).status_code == status
            assert (await sender.get(path.format(private.id))).status_code in (403, 404)
    assert (await anyone.get(f"/api/videos/{video.id}/viewers")).status_code == 401


async def test_class_behind_one_address_is_limited_by_viewer(
    editor: Sender,
    edith: Account,
    anyone: Sender,
    resources: WebContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folding, "MAX_OF_VIDEO", 2)
    video = await film(edith)
    for number in range(4):
        base = await base_of(video, resources, Viewer(f"{number}", "A learner"))
        for _ in range(3 if number == 0 else 1):
            await report(anyone, played(video.id, 0, 20), base=base)
    watched = {viewer["id"]: viewer["watchSeconds"] for viewer in await viewers_of(video, editor)}
    assert watched == {"0": 40, "1": 20, "2": 20, "3": 20}


async def test_names_are_deleted_after_thirty_days(
    editor: Sender, edith: Account, anyone: Sender, resources: WebContext
) -> None:
    video = await film(edith)
    await report(anyone, played(video.id, 0, 20), base=await base_of(video, resources))
    for days, row_count in ((29, 1), (2, 0)):
        await fold_inbox()
        await execute(AGE, days)
        await FEATURE.enforce_settings(resources.config)
        assert len(await fetch_rows(STORED)) == row_count
