"""A signed address is hidden from other users of the machine while ffmpeg reads the source."""

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


async def watch_children(texts: dict[str, str]) -> None:
    """Record argument lists and environments of this process's children."""
    while True:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                program = Path(f"/proc/{child.pid}/exe").readlink().name
                for kind in ("cmdline", "environ"):
                    text = Path(f"/proc/{child.pid}/{kind}").read_bytes().decode(errors="replace")
                    texts[f"{program} {kind}"] = texts.get(f"{program} {kind}", "") + text
        await asyncio.sleep(0.02)


async def test_neither_arguments_nor_environment_of_a_child_contain_the_address(
    make_media: MakeMedia, serve: Serve, sink: FolderSink, work_dir: Path
) -> None:
    source = make_card(make_media, "copyable.mp4", *COPYABLE)
    texts: dict[str, str] = {}
    watching = asyncio.create_task(watch_children(texts))
    try:
        # The index is at the end of the file, so that ffmpeg seeks.
        result = await transcode(await serve(source) + SIGNED, sink=sink, work_dir=work_dir)
    finally:
        watching.cancel()
    assert not {
        key: text for key, text in texts.items() if any(secret in text for secret in SECRETS)
    }
    ffmpeg = "".join(text for key, text in texts.items() if "ffmpeg" in key)
    assert "source.invalid" in ffmpeg, "ffmpeg was not observed"
    programs = "".join(texts.values())
    for package in ("probing", "copying"):
        assert f"portal.transcoding.{package}" in programs, "the child was not observed"
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
