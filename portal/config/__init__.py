"""Settings, read once from the environment (12-factor) into a frozen value.

`Config` is the table of settings: each field is the variable of the same name in capitals, with its
default, its values and its meaning. `SETTINGS` has the same for documentation; `values` has how
texts are read. Only this module reads `os.environ` for settings; AWS credentials stay with
botocore's own chain (environment, profile, instance role). All bad variables are reported in one
error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.config.values import (
    ANY_SITE,
    LOOPBACK,
    NO_SITE,
    ROLES,
    checked,
    is_database_url,
    is_host,
    one_of,
    read_accent,
    read_address,
    read_domains,
    read_hosts,
    read_issuer,
    read_logo,
    read_networks,
    read_roles,
    read_sites,
)
from portal.text import whole_number

MAX_DIGITS = 15
# Beside three links on a phone.
MAX_NAME = 40
MAX_RATE = 100_000_000
# Signature Version 4 allows at most seven days.
MAX_TTL_S = 604_800
# As RFC 6750 has bearer tokens; too long to guess.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
OIDC_NEEDED = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")

OTEL_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTEL_PROTOCOL = "http/protobuf"
OTEL_PACKAGES = ("exporter.otlp.proto.http", "instrumentation.asgi", "instrumentation.psycopg")


class ConfigError(Exception):
    """One or more environment variables are missing or wrong."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("Bad configuration:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Setting:
    """How one variable is read and documented.

    `default` is a value, or makes one from the settings before it. `parse` raises `ValueError` with
    what follows the variable's name in a message, once for each fault. `alias` names another
    variable that counts when this one is not set.
    """

    meaning: str
    default: Any
    parse: Callable[[str], Any] = str
    words: str = ""
    values: str = ""
    alias: str = ""

    @property
    def default_words(self) -> str:
        """The default as documentation has it."""
        return self.words or str(self.default or "empty")

    def read(self, variable: str, environ: Mapping[str, str], faults: list[str]) -> Any:
        """The parsed value, or None when the variable is not set or is at fault."""
        text = environ.get(variable, "").strip() or environ.get(self.alias, "").strip()
        try:
            value = self.parse(text) if text else ""
        except ValueError as exc:
            faults += [f"{variable}{fault}" for fault in exc.args]
            return None
        return None if value == "" else value


def _setting(*arguments: Any, **more: Any) -> Any:
    return field(metadata={"setting": Setting(*arguments, **more)})


def _integer(meaning: str, default: int, low: int, high: int) -> Any:
    def is_good(text: str) -> bool:
        number = whole_number(text, max_digits=MAX_DIGITS)
        return number is not None and low <= number <= high

    parse = checked(is_good, f"give a whole number from {low} to {high}.", int)
    return _setting(meaning, default, parse, words=str(default), values=f"{low} to {high}")


def _choice(meaning: str, default: str, choices: tuple[str, ...]) -> Any:
    return _setting(meaning, default, one_of(choices), values=", ".join(choices))


def _switch(meaning: str, default: Any = False, *, words: str = "off") -> Any:
    return _setting(meaning, default, one_of(("on", "off"), "on".__eq__), words=words)


def _own_address(before: Mapping[str, Any]) -> str:
    # Listening everywhere is no address to open.
    host = "localhost" if before["host"] in ("0.0.0.0", "::") else before["host"]  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{before['port']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of the web, the worker and the command line.

    Addresses carry no trailing slash. `playback_base_url` is empty when the portal itself
    serves playlists and signs segment addresses.
    """

    database_url: str = _setting(
        "PostgreSQL",
        "",
        checked(is_database_url, "give postgresql://user:password@host/database.", is_secret=True),
        words="required",
    )
    s3_endpoint_url: str = _setting("S3 as the portal reaches it; empty for AWS", "", read_address)
    s3_public_endpoint_url: str = _setting(
        "S3 as browsers reach it",
        lambda before: before["s3_endpoint_url"],
        read_address,
        words="S3_ENDPOINT_URL",
    )
    s3_bucket: str = _setting("bucket for uploads and output", "portal")
    aws_region: str = _setting("region of the bucket", "us-east-1", alias="AWS_DEFAULT_REGION")
    host: str = _setting(
        "address to listen on",
        "127.0.0.1",
        checked(is_host, "give an address or a name to listen on."),
    )
    port: int = _integer("port to listen on", 8000, 1, 65535)
    public_url: str = _setting(
        "address people use", _own_address, read_address, words="http://HOST:PORT"
    )
    playback_base_url: str = _setting("CDN in front of the bucket", "", read_address)
    embed_origins: tuple[str, ...] = _setting(
        "sites that may show a player in a frame",
        (ANY_SITE,),
        read_sites,
        words=ANY_SITE,
        values=f"sites, {ANY_SITE} or {NO_SITE}",
    )
    default_visibility: str = _choice(
        "who may see a new video", "public", ("public", "unlisted", "private")
    )
    site_name: str = _setting(
        "what pages call the site",
        "Portal",
        checked(lambda text: len(text) <= MAX_NAME, f"give at most {MAX_NAME} characters."),
    )
    site_accent: str = _setting("colour of links and buttons", "", read_accent)
    site_logo: Path | None = _setting("image file beside the name", None, read_logo)  # noqa: RUF009  # makes a field
    allowed_hosts: tuple[str, ...] = _setting("further names of the portal", (), read_hosts)
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "proxies whose X-Forwarded-For is believed", (), read_networks
    )
    web_workers: int = _integer("web processes", 1, 1, 64)
    worker_concurrency: int = _integer("videos a worker transcodes at once", 1, 1, 64)
    worker_prepare_concurrency: int = _integer("files a worker looks into at once", 2, 1, 64)
    database_pool_size: int = _integer("database connections of a process", 8, 2, 200)
    max_concurrent_requests: int = _integer(
        "requests a web process works on at once", 1000, 10, 100_000
    )
    # Of one client in a minute; 0 for any number.
    rate_limit_changes: int = _integer("changes a minute", 12_000, 0, MAX_RATE)
    rate_limit_searches: int = _integer("searches a minute", 6000, 0, MAX_RATE)
    rate_limit_sign_ins: int = _integer("tries to sign in a minute", 300, 0, MAX_RATE)
    # 0 takes any source. The defaults: 8192x4320, half a day, 100 GB, and a day of encoding.
    max_source_pixels: int = _integer("width times height", 35_389_440, 0, 10**9)
    max_source_duration_s: int = _integer("longest source", 43_200, 0, 10**7)
    max_source_bytes: int = _integer("largest source", 10**11, 0, 10**14)
    max_transcode_s: int = _integer("longest conversion of a source", 86_400, 0, 10**8)
    # Of an account; 0 for any number.
    max_videos_per_day: int = _integer("videos an account publishes in 24 hours", 0, 0, 10**6)
    max_stored_bytes: int = _integer("bytes an account keeps in storage", 0, 0, 10**14)
    upload_url_ttl_s: int = _integer("life of an upload address", 3600, 60, MAX_TTL_S)
    playback_url_ttl_s: int = _integer("life of a segment's address", 3600, 600, MAX_TTL_S)
    keep_jobs_days: int = _integer("days that finished jobs are kept; 0 for ever", 30, 0, 36_500)
    audit_days: int = _integer("days that the audit log is kept; 0 for ever", 365, 0, 36_500)
    downloads: bool = _switch("whether pages offer the uploaded file")
    oidc_issuer: str = _setting("provider of single sign-on", "", read_issuer)
    oidc_client_id: str = _setting("the portal's id at the provider", "")
    oidc_client_secret: str = _setting("the portal's secret at the provider", "")
    oidc_role_claim: str = _setting("claim that has a person's groups or roles", "groups")
    oidc_roles: tuple[tuple[str, str], ...] = _setting(
        "which of its values are which role", (), read_roles
    )
    oidc_domains: tuple[str, ...] = _setting("domains whose people may sign in", (), read_domains)
    # Admins are made on purpose.
    oidc_default_role: str = _choice("role of newcomers", "", ROLES[2:])
    metrics_token: str = _setting(
        "bearer token of /metrics",
        "",
        checked(TOKEN.fullmatch, "give 16 or more letters, digits and -._~+/=.", is_secret=True),
    )
    metrics: bool = _switch(
        "whether /metrics is served",
        lambda before: bool(before["metrics_token"]),
        words="off; on with METRICS_TOKEN",
    )
    log_level: str = _choice("least severe lines", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
    log_format: str = _choice("form of log lines", "json", ("json", "text"))
    work_dir: Path = _setting("a worker's folder for segments", Path("work"), Path)  # noqa: RUF009  # makes a field
    failing_processes_file: Path | None = _setting(  # noqa: RUF009  # makes a field
        "file in which `portal up` names its processes that keep failing", None, Path
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """Read the settings, or raise `ConfigError` listing every fault at once."""
        environ = os.environ if environ is None else environ
        faults = list(_tracing_faults(environ))
        values: dict[str, Any] = {}
        for variable, setting in SETTINGS.items():
            value = setting.read(variable, environ, faults)
            if value is None:
                value = setting.default(values) if callable(setting.default) else setting.default
            values[variable.lower()] = value
        faults += _missing(values, environ)
        if faults:
            raise ConfigError(faults)
        return cls(**values)


# By variable, in the order in which they are read: defaults may depend on settings before.
SETTINGS: Mapping[str, Setting] = {it.name.upper(): it.metadata["setting"] for it in fields(Config)}


def is_tracing_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces, as OpenTelemetry's specification has it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    return exporter != "none" and bool(exporter or _first(environ, OTEL_ENDPOINTS))


def _tracing_faults(environ: Mapping[str, str]) -> Iterator[str]:
    if not is_tracing_wanted(environ):
        return
    if (exporter := environ.get("OTEL_TRACES_EXPORTER", "").strip()) not in ("", "otlp"):
        yield f"OTEL_TRACES_EXPORTER={exporter!r}: choose one of otlp, none."
    if (protocol := _first(environ, OTEL_PROTOCOLS)) not in ("", OTEL_PROTOCOL):
        yield f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol!r}: only {OTEL_PROTOCOL} is supported."
    if not _is_otel_installed():
        yield (
            "OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_ENDPOINT asks for traces: install what "
            "they need with `pip install 'portal[otel]'`, or set OTEL_TRACES_EXPORTER=none."
        )


def _missing(values: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    """Settings that are needed, by themselves or because of others."""
    if not environ.get("DATABASE_URL", "").strip():
        yield (
            "DATABASE_URL is not set: give postgresql://user:password@host/database, "
            "or run `portal up`, which brings its own database."
        )
    if any(values[name.lower()] for name in OIDC_NEEDED):
        for name in OIDC_NEEDED:
            if not values[name.lower()] and not environ.get(name, "").strip():
                yield f"{name} is not set: single sign-on wants {', '.join(OIDC_NEEDED)}."
    # Any other public address means a proxy in front, through which others can ask.
    is_local = {values["host"], urlsplit(values["public_url"]).hostname} <= LOOPBACK
    if values["metrics"] and not environ.get("METRICS_TOKEN", "").strip() and not is_local:
        yield "METRICS_TOKEN is not set: METRICS=on wants it, others can ask."


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")


def _is_otel_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{name}") for name in OTEL_PACKAGES)
    except ModuleNotFoundError:
        return False
