"""Client address for rate limits, which clients can't forge."""

from ipaddress import ip_network
from typing import Any

import pytest

from portal.http.server.context import client_of, counted_as, networks_of

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        # The nearest that is no proxy, whatever the client put before it.
        ("10.0.0.1", ["6.6.6.6, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["6.6.6.6", "198.51.100.1,10.0.0.2"], "198.51.100.1"),
        # Nonsense counts as the proxy that passed it on.
        *(
            ("10.0.0.1", [f"198.51.100.1, {value}"], "10.0.0.1")
            for value in ("", "_hidden", "\xff")
        ),
        ("10.0.0.1", ["a" * 5000], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
    ],
)
def test_client_is_the_last_address_that_is_no_trusted_proxy(
    peer: str, forwarded: list[str], expected: str
) -> None:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in forwarded]
    scope: Any = {"type": "http", "client": (peer, 4711), "headers": headers}
    assert client_of(scope, trusted_proxies=PROXIES) == expected
    assert client_of(scope, trusted_proxies=()) == peer


def test_ipv6_clients_are_counted_by_network() -> None:
    assert counted_as("2001:db8:0:1::1") == "2001:db8:0:1::/64"
    assert counted_as("2001:db8:0:1:ffff::9") == "2001:db8:0:1::/64"
    assert networks_of("2001:db8:1:203::/64") == (
        "2001:db8:1:203::/64",
        "2001:db8:1:200::/56",
        "2001:db8:1::/48",
    )
    assert networks_of("192.0.2.1") == ("192.0.2.1",)
