"""Commands, settings, metrics, links and places in README and docs/ exist."""

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from click import Context, Group
from prometheus_client import Metric

from portal.cli.main import main
from portal.config import Config
from portal.features.statistics.metrics import metrics_of
from portal.telemetry.metrics import process_registry
from portal.web.monitoring import Figures, FiguresCollector

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DEPLOY = DOCS / "deploy"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
# Variables that `Config` does not read: of the AWS client, OpenTelemetry and `portal publish`.
FOREIGN_SETTINGS = re.compile(r"AWS_\w+|OTEL_\w+|PORTAL_URL|PORTAL_TOKEN")
SETTINGS = {field.name.upper() for field in fields(Config)}
# Suffixes of the samples of a metric.
SAMPLES = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
README_MAX_CHARS = 6_500
GLOSSARY_MAX_BYTES = 3_072
PLACE = re.compile(r"`((?:portal|tests|static|templates)/[\w/.-]*)`")


def text_of(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def first_cells(page: str) -> Iterator[str]:
    """Return the code in the first column of a page's tables."""
    for cell in re.findall(r"^\| (`[^|]+)\|", text_of(page), re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", cell)


def test_ci_runs_exactly_the_documented_test_commands() -> None:
    commands = re.findall(r"^.*\.venv/bin/pytest.*$", text_of("README.md"), re.MULTILINE)
    assert len(commands) == 2
    assert text_of(".ci/run").splitlines()[-2:] == commands


def test_readme_and_glossary_are_short() -> None:
    assert len(text_of("README.md")) <= README_MAX_CHARS
    glossary = text_of("docs/contributing.md").partition("## Glossary")[2]
    assert 0 < len(glossary.encode()) <= GLOSSARY_MAX_BYTES


def test_readme_runs_commands_that_exist() -> None:
    commands = re.findall(r"\.venv/bin/portal (.+)$", text_of("README.md"), re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"accounts", "publish", "up"}
    for command in commands:
        check_command(*shlex.split(command))


def test_links_exist_and_reach_every_page() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
            if target.startswith(("http://", "https://")):
                continue
            file, _, anchor = target.partition("#")
            linked = (page.parent / file).resolve() if file else page
            assert linked.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(text_of(linked)), f"{page}: {target}"
            if linked.suffix == ".md":
                ahead.append(linked)
    assert reached == set(PAGES)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_every_setting_and_no_other_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        monkeypatch.delenv(name)
    documented = {name for name in first_cells("docs/configuration.md") if name.isupper()}
    assert {name for name in documented if not FOREIGN_SETTINGS.fullmatch(name)} | {
        "AWS_REGION"
    } == SETTINGS


def metrics() -> list[Metric]:
    rows = dict.fromkeys(("jobs", "videos", "failures", "leases", "totals"), ())
    names = ("views", "watch_ms", "stalls", "failures", "ignored", "startups")
    figures = Figures(rows, metrics_of(dict.fromkeys(names, 0)))
    return [*process_registry().collect(), *FiguresCollector(figures).collect()]


def test_every_metric_and_no_other_is_documented() -> None:
    names = {
        f"{metric.name}_total" if metric.type == "counter" else metric.name for metric in metrics()
    }
    cells = first_cells("docs/operations.md")
    documented = {cell for cell in cells if cell.startswith("portal_")}
    assert documented == {name for name in names if name.startswith("portal_")}


def check_command(name: str, *arguments: str) -> None:
    """Check that a command, or a group's subcommand, exists and has these options."""
    command = main.get_command(Context(main), name)
    if isinstance(command, Group):
        command = command.get_command(Context(command), arguments[0])
    assert command is not None, name
    options = {option for param in command.params for option in param.opts}
    assert {word for word in arguments if word.startswith("-")} <= options, name


def test_deployments_run_commands_and_settings_that_exist() -> None:
    services = yaml.safe_load(text_of(DEPLOY / "compose.yaml"))["services"]
    ours = [service for service in services.values() if service["image"] == "portal:local"]
    for service in ours:
        names = {name for name in service["environment"] if not FOREIGN_SETTINGS.fullmatch(name)}
        assert names <= SETTINGS
    commands = [service["command"] for service in ours]
    started = re.compile(r"^ExecStart(?:Pre)?=\S*/portal (.+)$", re.MULTILINE)
    for path in DEPLOY.glob("*.service"):
        commands += [line.split() for line in started.findall(text_of(path))]
    # Each process is a shell line that migrates first, then runs the portal.
    starting = re.compile(r"^(\w+): .*; portal migrate && exec portal (.+)$", re.MULTILINE)
    for kind, command in starting.findall(text_of(ROOT / "Procfile")):
        assert command.split()[0] == kind
        commands.append(command.split())
    assert {"migrate", "web", "worker"} <= {name for name, *_ in commands}
    for command in commands:
        check_command(*command)
    variables = set(re.findall(r"\$\{(\w+)", text_of(DEPLOY / "compose.yaml")))
    assert variables == set(re.findall(r"^(\w+)=", text_of(DEPLOY / "compose.env"), re.MULTILINE))
    used = set(re.findall(r"\{\$(\w+)", text_of(DEPLOY / "Caddyfile")))
    assert used == set(services["proxy"]["environment"])


def test_cluster_and_dashboard_name_commands_settings_and_metrics_that_exist() -> None:
    parts = list(yaml.safe_load_all(text_of(DEPLOY / "kubernetes.yaml")))
    pods = [part["spec"]["template"]["spec"] for part in parts if "template" in part["spec"]]
    user = re.search(r"^USER (\d+)$", text_of(DEPLOY / "Dockerfile"), re.MULTILINE)
    assert user is not None
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == int(user[1])
    for container in (container for pod in pods for container in pod["containers"]):
        check_command(*container["args"])
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert {variable["name"] for variable in container.get("env", ())} <= SETTINGS
    panels = json.loads(text_of(DEPLOY / "dashboard.json"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries += [
        trigger["metadata"]["query"]
        for part in parts
        for trigger in part["spec"].get("triggers", ())
    ]
    samples = {f"{metric.name}{suffix}" for metric in metrics() for suffix in SAMPLES[metric.type]}
    for query in queries:
        used = set(re.findall(r"portal_\w+", query))
        assert used, query
        assert used <= samples, query


def test_guides_name_places_that_exist() -> None:
    for page in ("docs/architecture.md", "docs/contributing.md"):
        for place in PLACE.findall(text_of(page)):
            is_built = place == "static/dist/" or "screenshots" in place
            assert is_built or (ROOT / place).exists(), f"{page}: {place}"
