"""Small files in which one process leaves its state for others, or for its next start."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one step, readable by the owner alone from its first moment.

    A reader finds the old text or the new one, after a loss of power, too. One writer at a time.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
