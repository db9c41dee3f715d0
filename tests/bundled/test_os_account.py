"""What root opens for the database's account, and what stays closed."""

import stat
from pathlib import Path

from portal.bundled.os_account import grant_access
from portal.processes.child import SystemUser

OTHER = SystemUser("other", 65533, 65533)


def make_private(path: Path, *, executable: bool = False) -> Path:
    """A file as made under a umask of 077."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode=0o700)
    path.touch()
    path.chmod(0o700 if executable else 0o600)
    return path


def others_may(path: Path, bits: int) -> bool:
    return path.stat().st_mode & bits == bits


def test_a_wheel_unpacked_in_private_can_be_run_by_the_database(tmp_path: Path) -> None:
    programs = tmp_path / "site" / "wheel" / "pginstall"
    postgres = make_private(programs / "bin" / "postgres", executable=True)
    shared = make_private(programs / "share" / "postgres.bki")
    library = make_private(tmp_path / "site" / "wheel.libs" / "libpq.so")
    cluster = tmp_path / "data" / "postgres"
    cluster.mkdir(parents=True)

    grant_access(OTHER, cluster, programs)

    assert others_may(postgres, stat.S_IROTH | stat.S_IXOTH)
    assert others_may(shared, stat.S_IROTH)
    assert others_may(library, stat.S_IROTH)
    assert others_may(library.parent, stat.S_IROTH | stat.S_IXOTH)


def test_folders_on_the_way_may_be_passed_and_not_read(tmp_path: Path) -> None:
    programs = tmp_path / "site" / "wheel" / "pginstall"
    make_private(programs / "bin" / "postgres", executable=True)
    cluster = tmp_path / "data" / "postgres"
    cluster.mkdir(parents=True, mode=0o700)
    (tmp_path / "data").chmod(0o700)
    secret = make_private(tmp_path / "data" / "storage-key")

    grant_access(OTHER, cluster, programs)

    for folder in (tmp_path, tmp_path / "data", programs.parent):
        assert others_may(folder, stat.S_IXOTH)
        assert not others_may(folder, stat.S_IROTH)
    assert not others_may(secret, stat.S_IROTH)
