"""Every kind of source comes out as the same picture: whole, upright, in time, in true colours."""

from typing import Any

import pytest
from checking import check_published
from engine_kit import Publish
from matrix_rows import Row, all_rows
from sources import MakeMedia


def rows() -> list[Any]:
    """Every third row by default, all of them with `-m "soak or not soak"`."""
    return [
        pytest.param(row, id=row.name, marks=[pytest.mark.soak] if number % 3 else [])
        for number, row in enumerate(all_rows())
    ]


@pytest.mark.parametrize("row", rows())
async def test_a_source_is_published_as_it_was_meant(
    row: Row, make_media: MakeMedia, publish: Publish
) -> None:
    published = await publish(row.make(make_media))

    check_published(published, corners=row.corners, tolerance=row.tolerance, in_sync=row.in_sync)
