"""Numbers in words on pages."""

import pytest

from portal.web.pages.formatting import views_in_words


@pytest.mark.parametrize(
    ("views", "words"),
    [
        (0, "0 views"),
        (1, "1 view"),
        (999, "999 views"),
        (1_000, "1K views"),
        (1_999, "1.9K views"),
        (10_999, "10K views"),
        (999_999, "999K views"),
        (1_200_000, "1.2M views"),
    ],
)
def test_large_numbers_of_views_are_rounded_down(views: int, words: str) -> None:
    assert views_in_words(views) == words
