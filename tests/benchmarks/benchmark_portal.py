"""What the benchmarks share: a portal of their own, and programs that must be there.

Imported before what lies in the folder above, which is found once this is.
"""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from running_portal import (  # found above this folder
    LivePortal,
    fresh_database,
    migrated_services,
    run_portal,
)


@asynccontextmanager
async def measured_portal(
    folder: Path, *, worker: bool = False, **settings: str
) -> AsyncIterator[LivePortal]:
    """A portal that writes to disk safely, with these settings beside its usual ones.

    It logs into the folder: its lines would drown the results.
    """
    async with (
        migrated_services(folder, durable=True) as services,
        fresh_database(services) as environ,
        run_portal({**environ, **settings}, worker=worker, log_dir=folder) as portal,
    ):
        yield portal


def require(program: str) -> None:
    if shutil.which(program) is None:
        sys.exit(f"{program} is missing: apt-get install {program}")
