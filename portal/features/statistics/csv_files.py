"""Files for spreadsheets (CSV), whole or in pieces."""

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence

from quart import Response

# Excel takes a file without it for one in the encoding of the system, and garbles titles.
BYTE_ORDER_MARK = "\ufeff"
# First characters of formulas, also in full width, at the start of a text or after a separator: in
# many countries spreadsheets divide cells at semicolons, even in quotation marks.
FORMULA_START = re.compile(r"""((?:^|[;\t\r\n])[\s"]*)(?=[=+\-@\t\r＝＋－＠])""")  # noqa: RUF001


def csv_start(columns: Sequence[str]) -> str:
    """Return the beginning of a file for spreadsheets, with the names of its columns."""
    return BYTE_ORDER_MARK + csv_text([columns])


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, without the byte order mark with which `csv_start` begins a file.

    Texts that look like formulas get an apostrophe. Numbers stay as they are.
    """
    text = io.StringIO()
    csv.writer(text).writerows(map(_harmless_cell, row) for row in rows)
    return text.getvalue()


def _harmless_cell(value: object) -> object:
    return FORMULA_START.sub(r"\1'", value) if isinstance(value, str) else value


def csv_response(text: str | AsyncIterator[str], *, name: str) -> Response:
    """Return a file for spreadsheets to download."""
    response = Response(text, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
