"""A signed address stays between the worker and its ffmpeg, and the source is read as before."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp
import psutil
import pytest
from media_recipes import COPYABLE, MakeMedia, make_card
from published import FolderSink, transcode
from serving import Serve

from portal.transcoding.encoding.source_proxy import proxied

SIGNED = "?X-Amz-Credential=KEYID&X-Amz-Signature=5ecret7"
SECRETS = ("KEYID", "5ecret7")


async def watch_children(seen: dict[str, str]) -> None:
    """Note what the system tells of this process's children: argument lists and environments."""
    while True:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                program = Path(f"/proc/{child.pid}/exe").readlink().name
                for kind in ("cmdline", "environ"):
                    text = Path(f"/proc/{child.pid}/{kind}").read_bytes().decode(errors="replace")
                    seen[f"{program} {kind}"] = seen.get(f"{program} {kind}", "") + text
        await asyncio.sleep(0.02)


async def test_neither_arguments_nor_environment_of_a_child_tell_the_address(
    make_media: MakeMedia, serve: Serve, sink: FolderSink, work_dir: Path
) -> None:
    source = make_card(make_media, "copyable.mp4", *COPYABLE)
    seen: dict[str, str] = {}
    watching = asyncio.create_task(watch_children(seen))
    try:
        # Its index lies at the end: reading it takes seeks.
        result = await transcode(await serve(source) + SIGNED, sink=sink, work_dir=work_dir)
    finally:
        watching.cancel()
    assert not {key: text for key, text in seen.items() if any(it in text for it in SECRETS)}
    ffmpeg = "".join(text for key, text in seen.items() if "ffmpeg" in key)
    assert "source.invalid" in ffmpeg, "the encoder was never looked at"
    programs = "".join(seen.values())
    for package in ("probing", "copying"):
        assert f"portal.transcoding.{package}" in programs, "never looked at"
    assert result.output.duration_s == pytest.approx(7, abs=0.05)
    assert not list(work_dir.iterdir())


async def test_others_on_the_machine_learn_nothing_from_the_proxy() -> None:
    async with proxied(f"https://files.example/source.mp4{SIGNED}") as source:
        assert "files.example" not in source.name
        proxy = source.environ["http_proxy"]
        address = proxy.rpartition("@")[2]
        async with aiohttp.ClientSession() as session:
            for guess in (f"http://{address}", f"http://portal:guess@{address}"):
                async with session.get(source.name, proxy=guess, allow_redirects=False) as answer:
                    assert answer.status == 407
                    assert "Location" not in answer.headers
            async with session.get(source.name, proxy=proxy, allow_redirects=False) as answer:
                assert answer.status == 302
                assert answer.headers["Location"].endswith(SIGNED)
            elsewhere = session.get("http://other.invalid/", proxy=proxy, allow_redirects=False)
            async with elsewhere as answer:
                assert answer.status == 403


@pytest.mark.parametrize(
    ("address", "host"),
    [("http://MinIO:9000/a.mp4", "MinIO"), ("http://[::1]:9000/a.mp4", "::1")],
)
async def test_a_source_is_read_from_its_host_directly(address: str, host: str) -> None:
    async with proxied(address) as source:
        assert source.environ["no_proxy"] == host
