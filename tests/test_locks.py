"""The lock files beside `.ci/lock`: every package pinned by hash, in line with pyproject.toml."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CI = ROOT / ".ci"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {
    "requirements.txt": (),
    "requirements-captions.txt": ("captions",),
    "requirements-otel.txt": ("otel",),
}
EXTRAS["requirements-test.txt"] = ("test", "captions", "otel")
PINNED = re.compile(r"([\w.-]+)(?:\[[\w,.-]+\])?==(\S+)(?: ; (.+?))? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def locked(name: str) -> dict[str, set[str]]:
    """Return the versions by package; a package has several if platforms differ."""
    versions: dict[str, set[str]] = {}
    for line in (CI / name).read_text().splitlines():
        if pinned := PINNED.fullmatch(line):
            versions.setdefault(canonicalize_name(pinned[1]), set()).add(pinned[2])
        else:
            assert HASH.fullmatch(line) or line.startswith("#"), f"{name}: {line}"
    return versions


def requirements(name: str) -> list[Requirement]:
    """Return the direct requirements in pyproject.toml."""
    if name == "requirements-build.txt":
        return [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    project = PROJECT["project"]
    texts = [*project["dependencies"]]
    for extra in EXTRAS[name]:
        texts += project["optional-dependencies"][extra]
    parsed = [Requirement(text) for text in texts]
    return [requirement for requirement in parsed if requirement.name != project["name"]]


@pytest.mark.parametrize("name", [*EXTRAS, "requirements-build.txt"])
def test_lock_pins_every_requirement_by_hash(name: str) -> None:
    versions = locked(name)
    for requirement in requirements(name):
        pinned = versions.get(canonicalize_name(requirement.name))
        assert pinned, f"{requirement.name} is missing in {name}: run .ci/lock"
        assert all(map(requirement.specifier.contains, pinned)), f"{requirement}: run .ci/lock"
    text = (CI / name).read_text()
    assert "://" not in text, "it names a registry"
    blocks = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    packages = [block for block in blocks if block and not block.startswith("#")]
    assert packages
    assert all("--hash=sha256:" in block for block in packages)


def test_lock_of_the_front_end_pins_by_hash_and_names_no_registry() -> None:
    lock = json.loads((ROOT / "static" / "package-lock.json").read_text(encoding="utf-8"))
    named = [entry for name, entry in lock["packages"].items() if "node_modules/" in name]
    packages = [entry for entry in named if "link" not in entry]
    assert all(entry["integrity"].startswith("sha512-") for entry in packages)
    assert not any("resolved" in entry for entry in packages)
