"""What the tests of attacks share: what a log must not hold after them."""

import re
from pathlib import Path

COMPLAINT = re.compile(r"ERROR|CRITICAL|Traceback|Exception|Task .* never retrieved", re.IGNORECASE)


def complaints(log: Path) -> list[str]:
    """The lines of a log that say that the program itself went wrong."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if COMPLAINT.search(line)]
