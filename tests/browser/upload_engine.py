"""The upload engine by itself, in a real page: started, watched and asked from Python."""

import asyncio
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from front_end import install_tools, run_node
from playwright.async_api import Page

MIB = 2**20
PART_BYTES = 16 * MIB
PART_CONCURRENCY = 3
DONE_TIMEOUT_S = 300
_ADDRESS = "/static/engine-under-test.js"
_MODULES = ("store", "api", "local-storage", "storage", "transfer")
_BUNDLE = """
import { build } from "esbuild";
const [outfile, format, ...entries] = process.argv.slice(1);
const contents = entries.map((name) => `export * from "./src/upload/${name}.js";`).join("\\n");
await build({
  stdin: { contents, resolveDir: process.cwd() },
  bundle: true,
  globalName: "engine",
  format,
  outfile,
});
"""
# A store without a view. Keeps the uploads of a page by name, and all that they ever said.
_DRIVER = """async (address) => {
    const engine = await import(address);
    const input = document.createElement("input");
    input.type = "file";
    input.id = "engine-file";
    document.body.append(input);
    const urls = {
        presignUrl: "/api/videos/presign", uploadsUrl: "/api/uploads", publishUrl: "/api/videos",
        storageUrl: "/", preflightUrl: "/static/none.js",
    };
    const limits = { size_bytes: 0, duration_s: 0, pixels: 0 };
    const store = new engine.Store({ urls, limits }, new AbortController().signal);
    const runs = {};
    class Transfer {
        constructor(number) { this.number = number; }
        get upload() { return store.state.uploads.find((it) => it.number === this.number); }
        get id() { return this.upload.id; }
        get key() { return this.upload.key; }
        get uploadId() { return engine.uploadIdOf(this.key); }
        get state() { return this.upload.phase; }
        get sent_bytes() { return this.upload.sent_bytes; }
        get trouble() { return this.upload.failure; }
        press(type) { store.dispatch({ type, number: this.number }); }
        pause() { this.press("pause"); }
        resume() { this.press("resume"); }
        retry() { this.press("retry"); }
        cancel() { this.press("cancel"); }
    }
    const start = async (name, savedId) => {
        let file = input.files[0];
        // The same file again is another upload here.
        if (Object.keys(runs).length) file = new File([file], `${name}.mp4`, { type: file.type });
        const saved = (await engine.savedUploads()).found.filter((entry) => entry.id === savedId);
        if (saved.length) store.dispatch({ type: "restored", saved });
        const match = saved.length ? store.state.uploads.at(-1).number : null;
        const number = match ?? store.state.nextNumber;
        const run = { transfer: new Transfer(number), states: [], progress: [], troubles: [] };
        runs[name] = run;
        store.subscribe((state, before) => {
            const [now, was] = [state, before].map(({ uploads }) =>
                uploads.find((it) => it.number === number));
            if (!now) return;
            if (run.states.at(-1) !== now.phase) run.states.push(now.phase);
            if (now.failure && now.failure !== was?.failure) run.troubles.push(now.failure.message);
            // What is sent as a whole begins anew.
            if (now.sent_bytes < (was?.sent_bytes ?? 0)) run.progress = [];
            if (now.sent_bytes > (was?.sent_bytes ?? 0)) {
                run.progress.push([now.sent_bytes, now.phase]);
            }
        });
        const choices = [{ file, id: engine.newId(), match }];
        store.dispatch({ type: "chosen", choices, now: Date.now() });
    };
    const reaches = (name, test) => new Promise((resolve) => {
        const { transfer } = runs[name];
        const check = () => transfer.upload && test(transfer) && resolve();
        store.subscribe(check);
        check();
    });
    const saveDetails = (id, details) => {
        const { number } = store.state.uploads.find((upload) => upload.id === id);
        store.dispatch({ type: "edited", number, details, pointer: "" });
        engine.saveAll();
    };
    window.uploads = { ...engine, store, runs, start, reaches, saveDetails, input };
}"""


@cache
def engine_script(form: Literal["esm", "iife"] = "esm") -> bytes:
    """The upload modules as one script, made from the sources; `iife` sets `engine`."""
    install_tools()
    with TemporaryDirectory() as folder:
        path = Path(folder, "engine.js")
        run_node("--input-type=module", "-e", _BUNDLE, "--", str(path), form, *_MODULES)
        return path.read_bytes()


@dataclass
class Engine:
    """One page with the engine in it; each transfer has a name."""

    page: Page

    async def open(self) -> None:
        """Go to the upload page (again), with the engine beside the page's own scripts."""
        await self.page.route(
            f"**{_ADDRESS}",
            lambda route: route.fulfill(body=engine_script(), content_type="text/javascript"),
        )
        await self.page.goto("/upload")
        await self.page.evaluate(_DRIVER, _ADDRESS)

    async def start(self, path: Path, *, name: str = "one", saved_id: str = "") -> None:
        await self.page.locator("#engine-file").set_input_files(path)
        await self.page.evaluate("([name, id]) => uploads.start(name, id)", [name, saved_id])

    async def call(self, method: str, *, name: str = "one") -> None:
        """Press one of the transfer's buttons: pause, resume, retry, cancel."""
        await self.page.evaluate("([name, m]) => uploads.runs[name].transfer[m]()", [name, method])

    async def until(
        self, *states: str, name: str = "one", timeout_s: float = DONE_TIMEOUT_S
    ) -> None:
        """Wait until the transfer is in one of these states."""
        async with asyncio.timeout(timeout_s):
            await self.page.evaluate(
                "([name, states]) => uploads.reaches(name, (t) => states.includes(t.state))",
                [name, states],
            )

    async def until_sent(self, sent_bytes: int, *, name: str = "one") -> None:
        """Wait until so many bytes are on their way."""
        async with asyncio.timeout(DONE_TIMEOUT_S):
            await self.page.evaluate(
                "([name, bytes]) => uploads.reaches(name, (t) => t.sent_bytes >= bytes)",
                [name, sent_bytes],
            )

    async def get(self, member: str, *, name: str = "one") -> Any:
        return await self.page.evaluate("([n, m]) => uploads.runs[n].transfer[m]", [name, member])

    async def states(self, *, name: str = "one") -> list[str]:
        return await self.page.evaluate("(name) => uploads.runs[name].states", name)

    async def troubles(self, *, name: str = "one") -> list[str]:
        return await self.page.evaluate("(name) => uploads.runs[name].troubles", name)

    async def saved(self) -> list[dict[str, Any]]:
        return await self.page.evaluate("async () => (await uploads.savedUploads()).found")

    async def check_progress(self, size_bytes: int, *, name: str = "one") -> None:
        """It never went back, and was complete only once, at the end."""
        told = await self.page.evaluate("(name) => uploads.runs[name].progress", name)
        figures = [sent_bytes for sent_bytes, _state in told]
        assert all(before < after for before, after in pairwise(figures)), figures
        assert all(sent_bytes < size_bytes for sent_bytes in figures[:-1])
        assert figures[-1] == size_bytes
        assert await self.get("sent_bytes", name=name) == size_bytes
