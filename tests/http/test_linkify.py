"""Addresses and times in a description become links; whatever else it holds stays text."""

import pytest
from page_texts import Reader

from portal.http.formatting import MAX_ADDRESS_LENGTH, linkify
from portal.transcoding.planning.described_times import DescribedTimes


def addresses(text: str) -> list[str | None]:
    """The addresses that are linked; nothing else is markup, and the text is all there."""
    reader = Reader(str(linkify(text)))
    assert reader.text == text
    for tag, attributes in reader.tags:
        assert (tag, set(attributes)) == ("a", {"href", "rel"})
        assert attributes["rel"] == "nofollow noopener ugc"
    return [attributes["href"] for _, attributes in reader.tags]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("From 0:05, 1:05 to 1:02:03.", ["5", "65", "3723"]),
        ("(0:00), 00:07; 59:59", ["0", "7", "3599"]),
        # Beyond the end, no time, part of something longer, or of an address.
        ("2:00:00 and 1:75", []),
        ("1:75:00, 12:3, 1:2:3, 16:9, 11:45 hours", ["705"]),
        ("10.1:05 1:05.5 1:05:00:00 a1:05 http://[::1]:0:15 v1:05", []),
        ("https://example.org/1:05", []),
    ],
)
def test_times_within_the_video_become_links(text: str, expected: list[str]) -> None:
    reader = Reader(str(linkify(text, DescribedTimes({}, None, 7200))))
    assert reader.text == text
    times = [attributes for _, attributes in reader.tags if "data-seek" in attributes]
    assert [attributes["data-seek"] for attributes in times] == expected
    assert [attributes["href"] for attributes in times] == [f"?t={seconds}" for seconds in expected]
    assert "data-seek" not in str(linkify(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://example.org/a?b=1&c=2#d for more", ["https://example.org/a?b=1&c=2#d"]),
        ("https://a.example, HTTP://B.EXAMPLE/X;", ["https://a.example", "HTTP://B.EXAMPLE/X"]),
        ("(https://example.org/Sea_(film)).", ["https://example.org/Sea_(film)"]),
        ("„https://example.org/ä“,", ["https://example.org/ä"]),
        ("https://[2001:db8::1]:8080/x", ["https://[2001:db8::1]:8080/x"]),
        ("<https://example.org/a>", ["https://example.org/a"]),
        # No text adds markup.
        ('<script>alert("https://evil.example")</script>', ["https://evil.example"]),
        ('https://example.org/"onmouseover="alert(1)', ["https://example.org/"]),
        ("https://example.org/<img src=x onerror=alert(1)>", ["https://example.org/"]),
        ("&amp;lt;script&amp;gt; &#60;b&#62;", []),
        ("https://example.org/\u202egpj.exe", ["https://example.org/"]),
        ("https://example.org/\x00\x1b\x7f", ["https://example.org/"]),
        # No safe addresses.
        ("javascript:alert(1) JaVaScRiPt://example.org/%0aalert(1) www.example.org", []),
        ("data:text/html,<script>alert(1)</script> //example.org/a xhttps://example.org", []),
        *((text, []) for text in ("https:///path", "https://.", "https://a.example:port/")),
        *((text, []) for text in ("https://[::1", "https://user:secret@example.org/")),
        ("https://bank.example@evil.example/login", []),
        ("https://" + "a" * MAX_ADDRESS_LENGTH + ".example", []),
    ],
)
def test_address_ends_where_people_mean_it_to(text: str, expected: list[str]) -> None:
    assert addresses(text) == expected
