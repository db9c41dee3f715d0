"""A separate portal for benchmarks, and their command-line options.

Import this module first: it makes the modules in `tests/` importable, and what they import.
"""

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "static"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from running_portal import (  # a module of the parent folder
    LivePortal,
    fresh_database,
    migrated_services,
    run_portal,
)


@asynccontextmanager
async def measured_portal(
    folder: Path, *, worker: bool = False, **settings: str
) -> AsyncIterator[LivePortal]:
    """Run a portal that writes to disk safely, with additional settings.

    It logs into the folder, so that the output has only the results.
    """
    async with (
        migrated_services(folder, durable=True) as services,
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, worker=worker, log_dir=folder) as portal,
    ):
        yield portal


def options_of(text: str | None, **defaults: float) -> argparse.Namespace:
    """Parse options; each has the type of its default."""
    parser = argparse.ArgumentParser(description=text and text.partition("\n")[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()
