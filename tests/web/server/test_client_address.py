"""Who a request is counted for: never what a client says of itself."""

from ipaddress import ip_network
from typing import Any

import pytest

from portal.web.server.context import client_of, counted_as

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def client(peer: str, *forwarded: str, proxies: tuple[Any, ...] = PROXIES) -> str:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    scope: Any = {"type": "http", "client": (peer, 4711), "headers": headers}
    return client_of(scope, trusted_proxies=proxies)


def test_header_counts_for_nothing_unless_a_trusted_proxy_sends_it() -> None:
    assert client("192.0.2.1", "198.51.100.1") == "192.0.2.1"
    assert client("10.0.0.1", "198.51.100.1", proxies=()) == "10.0.0.1"
    assert client("10.0.0.1", "198.51.100.1") == "198.51.100.1"


def test_nearest_address_that_is_no_proxy_counts_whatever_the_client_put_before_it() -> None:
    assert client("10.0.0.1", "6.6.6.6, 198.51.100.1") == "198.51.100.1"
    assert client("10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.2") == "198.51.100.1"
    assert client("10.0.0.1", "6.6.6.6", "198.51.100.1,10.0.0.2") == "198.51.100.1"


@pytest.mark.parametrize("header", ["", "unknown", "_hidden", "a" * 5000, "1.2.3.4.5", "\xff"])
def test_nonsense_from_a_proxy_counts_as_the_proxy(header: str) -> None:
    assert client("10.0.0.1", header) == "10.0.0.1"
    assert client("10.0.0.1", f"198.51.100.1, {header}") == "10.0.0.1"


def test_ipv6_clients_are_counted_by_network() -> None:
    assert (
        counted_as("2001:db8:0:1::1") == counted_as("2001:db8:0:1:ffff::9") == "2001:db8:0:1::/64"
    )
    assert counted_as("2001:db8:0:2::1") != counted_as("2001:db8:0:1::1")
