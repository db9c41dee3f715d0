"""Requests to addresses that people typed in reach the Internet, and what the settings name."""

import socket
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from webhook_receiver import receiving

from portal.config import Config
from portal.events.outgoing import address_fault, is_allowed, open_session, read_start

REFUSED = [
    "127.0.0.1",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
    "2002:808:808::1",
    "2001:0:a00:1::1",
    "2001:db8::1",
    "ff02::1",
]
# Host name of the greatest length that DNS allows.
LONGEST_HOST = ".".join(("a" * 63, "b" * 63, "c" * 63, "d" * 61))


def test_addresses_that_are_not_public_are_refused_unless_the_settings_name_them() -> None:
    assert [address for address in REFUSED if is_allowed(address, ())] == []
    assert all(is_allowed(address, ()) for address in ("8.8.8.8", "1.1.1.1", "2606:4700::1111"))
    networks = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    named = [address for address in REFUSED if is_allowed(address, networks)]
    assert named == ["10.0.0.1", "fd00:ec2::254"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://example.org:8443/hook?a=1", None),
        ("https://169.254.169.254/", "OUTGOING_NETWORKS"),
        ("https://[::ffff:10.0.0.1]/", "OUTGOING_NETWORKS"),
        ("http://example.org/", "https"),
        ("ftp://example.org/", "Give an address"),
        ("https://ann:secret@example.org/", "user's name"),
        ("https://", "Give an address"),
        (f"https://example.org/{'a' * 2000}", "Give an address"),
        ("https://example.org:0/", "Give an address"),
        ("https://example.org:65536/", "Give an address"),
        ("https://example.org/a\r\nb", "Give an address"),
        (f"https://{LONGEST_HOST}:65535/", None),
        (f"https://{LONGEST_HOST}a/", "name of a host"),
        (f"https://{'a' * 64}.example/", "name of a host"),
        (f"https://{'ü' * 60}.example/", "name of a host"),
        ("https://bücher.example/", None),
        ("https://a..example/", "name of a host"),
        ("https://.example/", "name of a host"),
        ("https://a b.example/", "name of a host"),
        ("https://a%2fb.example/", "name of a host"),
        ("https://a\\b.example/", "name of a host"),
    ],
)
def test_address_says_by_itself_that_nothing_can_be_sent_to_it(url: str, words: str | None) -> None:
    fault = address_fault(url, Config.from_env({"DATABASE_URL": "postgresql://localhost/portal"}))
    assert fault is None if words is None else words in str(fault)


async def post(url: str, networks: list[str]) -> bytes:
    allowed = [ip_network(network) for network in networks]
    async with (
        open_session(networks=allowed, timeout_s=5) as session,
        session.post(url, allow_redirects=False) as response,
    ):
        return await read_start(response, max_bytes=3)


async def test_requests_connect_to_the_checked_address_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as receiver:
        receiver.body = b"answer"
        port = int(receiver.url.split(":")[2].split("/")[0])

        async def resolve(*_: Any, **__: Any) -> list[Any]:
            info = {"hostname": "hook.example", "port": port, "family": socket.AF_INET}
            return [
                {**info, "host": host, "proto": 0, "flags": 0}
                for host in ("127.0.0.2", "127.0.0.1")
            ]

        monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)
        named = f"http://hook.example:{port}/hook"
        # The refused one of two addresses gets no request.
        assert await post(named, ["127.0.0.1/32"]) == b"ans"
        refused = pytest.raises(aiohttp.ClientConnectorError, match="OUTGOING_NETWORKS")
        for url in (named, receiver.url):
            with refused:
                await post(url, ["127.0.0.3/32"])
        assert len(receiver.requests) == 1
        [(headers, _)] = receiver.requests
        assert headers["Host"] == f"hook.example:{port}"
