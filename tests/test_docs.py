"""What README and the pages in docs/ promise, as far as a machine can check it."""

import os
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from click import Command, Context
from quart import Quart
from werkzeug.exceptions import default_exceptions

from portal import errors
from portal.accounts.audit import REFUSALS_AN_HOUR, AuditAction
from portal.accounts.links import LIFE_DAYS
from portal.accounts.passwords import MIN_LENGTH
from portal.accounts.sessions import IDLE_DAYS
from portal.accounts.signing_in import FREE_TRIES_OF_ACCOUNT, FREE_TRIES_OF_ADDRESS, MAX_WAIT_S
from portal.cli.main import main
from portal.config import Config
from portal.database.states import Role, Scope
from portal.processing.attempts import ABANDONED
from portal.processing.sources import SourceChanged
from portal.transcoding.errors import FailCode, RejectCode
from portal.videos.publishing import TRANSCODE_FAILED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGE = DOCS / "access.md"
DEPLOY = DOCS / "deploy"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
MAX_README_BYTES = 8_000
MAX_GLOSSARY_BYTES = 3_000
MAX_IMAGE_BYTES = 150_000
# Refused by the framework itself, under the names that HTTP has for them.
HTTP_STATUSES = (405, 408, 413)
MINIMAL = {"DATABASE_URL": "postgresql://portal@db/portal", "S3_ENDPOINT_URL": "http://s3:9000"}
# Read by others than `Config`: by the AWS client, and by the command that names its portal.
OTHERS = re.compile(r"AWS_\w+|OTEL_\w+|PORTAL_URL")
METRIC = re.compile(r'(Counter|_?[Gg]auge|Histogram)\w*\(\s*"(portal_\w+)"')


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    _, found, after = f"\n{text}".partition(f"\n{title}\n")
    assert found, title
    return re.split(rf"^#{{1,{len(level)}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without their heads."""
    found = []
    for above, line in pairwise(["", *text.splitlines()]):
        if line.startswith("| ") and not line.startswith("| ---"):
            found.append(re.split(r"(?<!\\)\|", line)[1:-1])
        elif line.startswith("| ---"):
            assert above.startswith("| ")
            found.pop()
    return [[cell.strip() for cell in row] for row in found]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_ci_runs_exactly_the_documented_test_command() -> None:
    commands = re.findall(r"^.*\.venv/bin/pytest.*$", text_of("README.md"), re.MULTILINE)
    assert len(commands) == 2
    assert text_of(".ci/run").splitlines()[-1] == commands[0]


def test_pages_that_everyone_reads_stay_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= MAX_README_BYTES
    glossary = section(text_of("docs/contributing.md"), "## Glossary")
    assert len(glossary.encode()) <= MAX_GLOSSARY_BYTES
    for image in (DOCS / "images").iterdir():
        assert image.stat().st_size <= MAX_IMAGE_BYTES, image


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.is_relative_to(ROOT), target
        assert found.exists(), target
        if anchor:
            assert anchor in set(anchors(found.read_text(encoding="utf-8"))), target


def anchors(text: str) -> Iterator[str]:
    """The names that forges give to headings."""
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r"\]\(([^)\s#]+\.md)[)#]", page.read_text(encoding="utf-8"))
            ahead += [(page.parent / link).resolve() for link in links]
    assert reached == set(PAGES)


def test_settings_have_the_documented_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        monkeypatch.delenv(name)
    config = Config.from_env(MINIMAL)
    table = rows(text_of("docs/configuration.md"))
    documented = {name: default for cell, default, _ in table for name in names(cell)[:1]}
    settings = {field.name.upper() for field in fields(Config)}
    assert {name for name in documented if not OTHERS.fullmatch(name)} | {"AWS_REGION"} == settings
    assert documented.pop("DATABASE_URL") == "required"
    for name in settings & documented.keys():
        is_given = name in MINIMAL
        found = getattr(Config.from_env(without(name)) if is_given else config, name.lower())
        assert shown(found) == expected(documented[name], config), name


def without(name: str) -> dict[str, str]:
    return {given: value for given, value in MINIMAL.items() if given != name}


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def expected(default: str, config: Config) -> str:
    """What a cell of defaults says, with the settings it refers to put in."""
    if default == "empty":
        return ""
    value = names(default)[0].replace("HOST:PORT", f"{config.host}:{config.port}")
    is_setting = value.isupper() and hasattr(config, value.lower())
    return str(getattr(config, value.lower())) if is_setting else value


def test_metrics_are_on_by_default_where_there_is_a_token() -> None:
    assert Config.from_env({**MINIMAL, "METRICS_TOKEN": "0123456789abcdef"}).metrics


def test_every_error_of_the_api_is_documented_with_its_status() -> None:
    table = rows(section(text_of("docs/api.md"), "## Errors"))
    documented = [(int(status), code) for status, cell, _ in table for code in names(cell)]
    raised = {(kind.status, kind.code) for kind in concrete(errors.PortalError)}
    framework = {
        (status, default_exceptions[status]().name.lower().replace(" ", "_"))
        for status in HTTP_STATUSES
    }
    assert len(documented) == len(set(documented))
    assert set(documented) == raised | framework


def concrete(kind: type[errors.PortalError]) -> Iterator[type[errors.PortalError]]:
    """The errors that are raised; these two are only what others have in common."""
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from concrete(below)
    if kind not in (errors.Unavailable, errors.Conflict):
        yield kind


async def test_every_call_of_the_api_is_documented(app: Quart) -> None:
    async with app.app_context():
        spec = app.extensions["QUART_SCHEMA"].openapi_provider.schema()
    operations = {
        (method.upper(), unnamed(path)) for path, of in spec["paths"].items() for method in of
    }
    table = rows(text_of("docs/api.md").partition("## Errors")[0])
    calls = [names(cell)[0].split() for cell, _ in table]
    documented = [(words[0], unnamed(words[1])) for words in calls if words[1].startswith("/api/")]
    assert len(documented) == len(set(documented))
    assert set(documented) == operations


def test_limits_of_access_are_the_documented_ones() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    tries = f"after {FREE_TRIES_OF_ACCOUNT} failures of an account, or {FREE_TRIES_OF_ADDRESS} from"
    waits = f"1 s, then twice as long each time, at most {MAX_WAIT_S} s"
    password = f"A password has {MIN_LENGTH} characters or more"
    lives = f"works once, for {LIFE_DAYS} days", f"after {IDLE_DAYS} days without use"
    for words in (tries, waits, password, *lives):
        assert words in page


def test_roles_and_scopes_are_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [role for role, _ in rows(section(page, "## Roles"))] == [*Role]
    assert [scope for cell, _ in rows(section(page, "## API tokens")) for scope in names(cell)] == [
        *Scope
    ]


def test_actions_of_the_audit_log_are_documented() -> None:
    table = rows(section(PAGE.read_text(encoding="utf-8"), "## Audit log"))
    documented = [f"{names(kind)[0]}.{name}" for kind, cell in table for name in names(cell)]
    assert sorted(documented) == sorted(AuditAction)
    assert f"After {REFUSALS_AN_HOUR} failed tries within an hour" in PAGE.read_text("utf-8")


def unnamed(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def test_failure_codes_are_documented() -> None:
    why = section(text_of("docs/api.md"), "## Why a video failed")
    of_video, of_rendition = why.split("\nA rendition that failed", 1)
    codes = {code for cell, _ in rows(of_video) for code in names(cell)}
    assert codes == {*RejectCode, SourceChanged.code, TRANSCODE_FAILED}
    codes = {code for cell, _ in rows(of_rendition) for code in names(cell)}
    assert codes == {*FailCode, ABANDONED.code, errors.PortalError.code}


def test_every_metric_is_documented() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "portal").rglob("*.py"))
    made = {
        f"{name}_total" if kind == "Counter" else name
        for source in sources
        for kind, name in METRIC.findall(source)
    }
    table = rows(section(text_of("docs/operations.md"), "## Metrics"))
    documented = {name for cell, *_ in table for name in names(cell) if " " not in name}
    assert {name for name in documented if re.fullmatch(r"portal_\w+", name)} == made


def test_pages_name_no_module_that_may_move() -> None:
    for page in PAGES:
        if page.name not in ("architecture.md", "contributing.md"):
            assert not re.search(r"portal/[\w/]+\.py", page.read_text(encoding="utf-8")), page


def command(name: str) -> Command:
    found = main.get_command(Context(main), name)
    assert found is not None, name
    return found


def test_deployments_run_commands_and_settings_that_exist() -> None:
    settings = {field.name.upper() for field in fields(Config)}
    compose = yaml.safe_load(text_of("docs/deploy/compose.yaml"))
    ours = [it for it in compose["services"].values() if it["image"] == "portal:local"]
    commands = [it["command"] for it in ours]
    assert sorted(words[0] for words in commands) == ["migrate", "web", "worker"]
    for service in ours:
        own = {name for name in service["environment"] if not OTHERS.fullmatch(name)}
        assert own <= settings
    started = re.compile(r"^(?:ExecStart(?:Pre)?=\S*/|\w+: )portal (.+)$", re.MULTILINE)
    for path in (ROOT / "Procfile", *DEPLOY.glob("*.service")):
        found = started.findall(path.read_text(encoding="utf-8"))
        assert found, path
        commands += [line.split() for line in found]
    for words in commands:
        check_command(words)


def check_command(words: list[str]) -> None:
    name, *arguments = words
    known = {option for param in command(name).params for option in param.opts}
    assert {word for word in arguments if word.startswith("-")} <= known, words


def test_compose_asks_for_what_its_example_of_an_environment_has() -> None:
    asked = re.findall(r"\$\{(\w+)", text_of("docs/deploy/compose.yaml"))
    given = re.findall(r"^(\w+)=", text_of("docs/deploy/compose.env"), re.MULTILINE)
    assert set(asked) == set(given)
    used = set(re.findall(r"\{\$(\w+)", text_of("docs/deploy/Caddyfile")))
    proxy = yaml.safe_load(text_of("docs/deploy/compose.yaml"))["services"]["proxy"]
    assert used == set(proxy["environment"])


def test_code_map_has_every_package_and_no_other() -> None:
    text = text_of("docs/architecture.md")
    table = rows(section(text, "## Code map").partition("\nOutside of the package:")[0])
    mapped = {name for cell, *_ in table for name in names(cell)}
    for name in mapped:
        assert (ROOT / "portal" / name).exists(), name
    top = {path.name for path in (ROOT / "portal").iterdir() if (path / "__init__.py").is_file()}
    assert {f"{name}/" for name in top} <= mapped


def test_guides_name_places_that_exist() -> None:
    for page in ("docs/architecture.md", "docs/contributing.md"):
        for place in re.findall(r"`((?:portal|tests|static|templates)/[\w/.-]*)`", text_of(page)):
            is_built = place == "static/dist/" or "screenshots" in place
            assert is_built or (ROOT / place).exists(), place
