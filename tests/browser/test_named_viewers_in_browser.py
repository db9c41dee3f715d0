"""Viewers whom another system names: told in its frame, and shown to the editors of the video."""

import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chromium import OWNER, PASSWORD, OpenPage, play_past, suits_everyone
from command_line import portal as command
from command_line import run_program
from framing_site import framing_site, show_framed
from playwright.async_api import expect
from running_portal import LivePortal, call, create, final_status, fresh_portal, make_video, until

pytestmark = pytest.mark.slow

# Programs such as a headless browser are not counted.
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36"
NOTE = "Your name and what you watch are shown to the editors of this video."
FILM_S = 12
GUIDE = Path(__file__).parents[2] / "docs/embedding-in-other-systems.md"
# Classes and functions of Moodle and WordPress that the examples call. They send real requests.
PRELUDE = r"""
namespace core_filters { class text_filter {} }
namespace {
    function post($url, $headers, $body) {
        return file_get_contents($url, false, stream_context_create(['http' => [
            'method' => 'POST', 'header' => $headers, 'content' => $body]]));
    }
    function first($text, $count) { return preg_replace("/^(.{0,$count}).*/us", '$1', $text); }
    if (!function_exists('mb_substr')) {
        function mb_substr($text, $start, $count) { return first($text, $count); }
    }
    class core_text {
        static function substr($text, $start, $count) { return first($text, $count); }
    }
    class curl {
        private $headers;
        function setHeader($headers) { $this->headers = $headers; }
        function post($url, $body, $options) { return post($url, $this->headers, $body); }
    }
    function s($text) { return htmlspecialchars($text); }
    function esc_url($url) { return htmlspecialchars($url); }
    function esc_attr__($text) { return htmlspecialchars($text); }
    function isloggedin() { return true; }
    function isguestuser() { return false; }
    function fullname($user) { return $user->name; }
    function get_config($plugin, $name) { return getenv('PORTAL_' . strtoupper($name)); }
    function add_shortcode($name, $shown) { $GLOBALS['shortcode'] = $shown; }
    function wp_get_current_user() { return $GLOBALS['USER']; }
    function wp_is_uuid($text) { return (bool) preg_match('/^[0-9a-f-]{36}$/', $text); }
    function wp_json_encode($value) { return json_encode($value); }
    function wp_remote_retrieve_body($response) { return $response; }
    function wp_remote_post($url, $options) {
        $lines = [];
        foreach ($options['headers'] as $name => $value) { $lines[] = "$name: $value"; }
        return post($url, $lines, $options['body']);
    }
    class User {
        public $id = 4711, $ID = 4711, $name = 'Zoë "Z" Zander', $display_name = 'Zoë "Z" Zander';
        function exists() { return true; }
    }
    define('PORTAL_URL', getenv('PORTAL_URL'));
    define('PORTAL_TOKEN', getenv('PORTAL_TOKEN'));
    $USER = new User();
    $CFG = (object) ['libdir' => getenv('LIBDIR')];
    require getenv('EXAMPLE');
    $id = getenv('VIDEO_ID');
    echo isset($shortcode) ? $shortcode(['id' => $id])
        : (new \filter_portal\text_filter())->filter("See [portal_video $id]");
}
"""


@dataclass(frozen=True)
class NamingPortal:
    """Portal that names viewers, a video that plays, and an API token for links to it."""

    live: LivePortal
    video_id: str
    token: str

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        """Send a request about the video with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.live.base_url}/api/videos/{self.video_id}{path}"
        return await call(method, url, headers=headers, **options)


@pytest.fixture(scope="module")
async def naming(
    services: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[NamingPortal]:
    folder = tmp_path_factory.mktemp("naming")
    film = make_video(folder / "film.mp4", seconds=FILM_S, rate=10)
    settings = {"WORK_DIR": str(folder), "VIEWER_NAMES": "on"}
    async with fresh_portal(services, worker=True, **settings) as live:
        video_id = (await create(live.base_url, film))["id"]
        assert await final_status(live.base_url, video_id) == "ready"
        add = ("accounts", "add", OWNER, "--role", "owner", "--password-stdin")
        assert (await command(live.environ, *add, typed=f"{PASSWORD}\n")).code == 0
        make = ("tokens", "add", OWNER, "--name", "a", "--scope", "videos:write")
        added = await command(live.environ, *make)
        yield NamingPortal(live, video_id, added.out.strip())


async def test_learner_in_a_frame_is_told_and_named(
    open_page: OpenPage, naming: NamingPortal
) -> None:
    viewer = {"id": "4711", "label": "Lena Lehmann"}
    body = {"expiresInSeconds": 600, "viewer": viewer}
    link = await naming.ask("POST", "/playback-links", status=201, json=body)
    assert link["viewer"] == viewer
    learner = await open_page(user_agent=CHROME)
    async with framing_site() as site:
        frame = await show_framed(learner, site, link["embedUrl"])
        note = frame.get_by_text(NOTE)
        await expect(note).to_be_visible()
        # The note is below the film, whatever the size of the frame.
        for width, height in ((360, 203), (640, 360)):
            size = f"frame => {{ frame.width = {width}; frame.height = {height}; }}"
            await learner.locator("#frame").evaluate(size)
            film_box = await frame.locator("video").bounding_box()
            note_box = await note.bounding_box()
            frame_box = await learner.locator("#frame").bounding_box()
            assert film_box
            assert note_box
            assert frame_box
            assert film_box["y"] + film_box["height"] <= note_box["y"] + 1
            bottom = frame_box["y"] + frame_box["height"]
            assert note_box["y"] + note_box["height"] <= bottom + 1
        await frame.locator("video").evaluate(
            """async (video) => {
                video.muted = true;
                await video.play();
                while (!video.ended) await new Promise((resolve) => setTimeout(resolve, 50));
            }"""
        )
        await learner.close()
    viewers: list[dict[str, Any]] = []

    async def is_named() -> bool:
        viewers[:] = (await naming.ask("GET", "/viewers"))["viewers"]
        return bool(viewers) and viewers[0]["isCompleted"]

    await until(is_named, timeout_s=30, interval_s=0.5)
    assert [(row["kind"], row["id"], row["label"]) for row in viewers] == [
        ("external", "4711", "Lena Lehmann")
    ]
    assert viewers[0]["watchSeconds"] == pytest.approx(FILM_S, abs=2)

    editor = await open_page(base_url=naming.live.base_url)
    await editor.request.post("/sign-in", form={"email": OWNER, "password": PASSWORD})
    await editor.goto(f"/videos/{naming.video_id}/statistics")
    table = editor.get_by_role("region", name="Viewers as a table")
    await expect(table.get_by_role("row", name="Lena Lehmann")).to_contain_text("4711")
    await suits_everyone(editor, "named-viewers")
    file = editor.locator("#viewers").get_by_role("link", name="Download CSV")
    await file.focus()
    async with editor.expect_download() as download:
        await file.press("Enter")
    text = (await (await download.value).path()).read_text("utf-8-sig")
    assert text.splitlines()[1].startswith("external,4711,Lena Lehmann,")


async def test_signed_in_viewer_is_told_below_the_player(
    open_page: OpenPage, naming: NamingPortal
) -> None:
    add = ("accounts", "add", "vera@example.org", "--role", "viewer", "--password-stdin")
    assert (await command(naming.live.environ, *add, typed=f"{PASSWORD}\n")).code == 0
    page = await open_page(base_url=naming.live.base_url)
    form = {"email": "vera@example.org", "password": PASSWORD}
    await page.request.post("/sign-in", form=form)
    await page.goto(f"/videos/{naming.video_id}")
    await play_past(page, 0)
    await expect(page.get_by_text(NOTE)).to_be_visible()
    await suits_everyone(page, "named-viewer")


@pytest.mark.skipif(not shutil.which("php"), reason="there is no PHP")
@pytest.mark.parametrize("system", ["Moodle", "WordPress"])
async def test_examples_frame_the_player_of_a_named_viewer(
    system: str, naming: NamingPortal, tmp_path: Path
) -> None:
    section = GUIDE.read_text().partition(f"\n## {system}\n")[2]
    [code, *_] = re.findall(r"^```php\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    example = tmp_path / "example.php"
    example.write_text(code)
    (tmp_path / "filelib.php").touch()
    environ = {
        "PORTAL_URL": naming.live.base_url,
        "PORTAL_TOKEN": naming.token,
        "EXAMPLE": str(example),
        "LIBDIR": str(tmp_path),
        "VIDEO_ID": naming.video_id,
    }
    main = tmp_path / "main.php"
    main.write_text(f"<?php\n{PRELUDE}")
    _, out, errors = await run_program("php", str(main), env=environ)
    assert errors == ""
    [address] = re.findall(r'<iframe src="([^"]+)"', out)
    assert address.endswith(f"/embed/{naming.video_id}")
    assert address.startswith(f"{naming.live.base_url}/p/")
