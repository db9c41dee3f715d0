"""Texts in files for spreadsheets."""

import pytest

from portal.features.statistics.csv_files import csv_text


@pytest.mark.parametrize(
    ("title", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("x;=1+1", "x;'=1+1"),
        ("x; \t=1+1;-2", "x; \t'=1+1;'-2"),
        ('x;"@SUM(A1);', '"x;""\'@SUM(A1);"'),
        ("\n＋1", '"\n\'＋1"'),  # noqa: RUF001
        ("Alps - by boat; 1+1=2", "Alps - by boat; 1+1=2"),
    ],
)
def test_titles_are_no_formulas_wherever_cells_are_divided(title: str, cell: str) -> None:
    assert csv_text([[-1.5, title]]) == f"-1.5,{cell}\r\n"
