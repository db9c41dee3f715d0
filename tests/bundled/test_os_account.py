"""What root opens for the database's account, and what stays closed."""

import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from portal.bundled.os_account import grant_access
from portal.processes.child import SystemUser

OTHER = SystemUser("other", 65533, 65533)


@pytest.fixture
def private_folder() -> Iterator[Path]:
    """A folder in which everything is made as under a umask of 077."""
    with TemporaryDirectory(prefix="portal-test-") as folder:
        yield Path(folder)


def make_private(path: Path, *, executable: bool = False) -> Path:
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700)
    path.touch()
    path.chmod(0o700 if executable else 0o600)
    return path


def others_may(path: Path, bits: int) -> bool:
    return path.stat().st_mode & bits == bits


def test_a_wheel_unpacked_in_private_can_be_run_by_the_database(private_folder: Path) -> None:
    programs = private_folder / "site" / "wheel" / "pginstall"
    postgres = make_private(programs / "bin" / "postgres", executable=True)
    shared = make_private(programs / "share" / "postgres.bki")
    library = make_private(private_folder / "site" / "wheel.libs" / "libpq.so")
    cluster = private_folder / "data" / "postgres"
    cluster.mkdir(parents=True)

    grant_access(OTHER, cluster, programs)

    assert others_may(postgres, stat.S_IROTH | stat.S_IXOTH)
    assert others_may(shared, stat.S_IROTH)
    assert others_may(library, stat.S_IROTH)
    assert others_may(library.parent, stat.S_IROTH | stat.S_IXOTH)


def test_folders_on_the_way_may_be_passed_and_not_read(private_folder: Path) -> None:
    programs = private_folder / "site" / "wheel" / "pginstall"
    make_private(programs / "bin" / "postgres", executable=True)
    cluster = private_folder / "data" / "postgres"
    cluster.mkdir(parents=True, mode=0o700)
    (private_folder / "data").chmod(0o700)
    secret = make_private(private_folder / "data" / "storage-key")

    grant_access(OTHER, cluster, programs)

    for folder in (private_folder, private_folder / "data", programs.parent):
        assert others_may(folder, stat.S_IXOTH)
        assert not others_may(folder, stat.S_IROTH)
    assert not others_may(secret, stat.S_IROTH)
