"""Files for spreadsheets (CSV), whole or in pieces."""

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence

from quart import Response


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as text for spreadsheets."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def csv_response(text: str | AsyncIterator[str], *, name: str) -> Response:
    """Return a file for spreadsheets to download."""
    response = Response(text, content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
