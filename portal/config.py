"""Settings, read once from the environment (12-factor) into a frozen value.

`Config` is the table of settings: each field is the variable of the same name in capitals, with its
default, its values and its meaning. `SETTINGS` has the same for documentation. Only this module
reads `os.environ` for settings; AWS credentials stay with botocore's own chain (environment,
profile, instance role). All bad variables are reported in one error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from portal.text import host_name, http_address, whole_number

# In ALLOWED_HOSTS: every name is allowed.
ANY_HOST = "*"
MAX_DIGITS = 15
MAX_RATE = 100_000_000
# Signature Version 4 allows at most seven days.
MAX_TTL_S = 604_800
# As RFC 6750 has bearer tokens; too long to guess.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

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

    parse = _checked(is_good, f"give a whole number from {low} to {high}.", int)
    return _setting(meaning, default, parse, words=str(default), values=f"{low} to {high}")


def _choice(meaning: str, default: str, choices: tuple[str, ...]) -> Any:
    return _setting(meaning, default, _one_of(choices), values=", ".join(choices))


def _switch(meaning: str, default: Any = False, *, words: str = "off") -> Any:
    return _setting(meaning, default, _one_of(("on", "off"), "on".__eq__), words=words)


def _one_of(choices: tuple[str, ...], make: Callable[[str], Any] = str) -> Callable[[str], Any]:
    return _checked(choices.__contains__, f"choose one of {', '.join(choices)}.", make)


def _checked(
    is_good: Callable[[str], object],
    remedy: str,
    make: Callable[[str], Any] = str,
    *,
    is_secret: bool = False,
) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        if not is_good(text):
            raise ValueError(f": {remedy}" if is_secret else f"={text!r}: {remedy}")
        return make(text)

    return parse


def _is_database_url(text: str) -> bool:
    try:
        conninfo_to_dict(text)
    except ProgrammingError:
        return False
    return text.startswith(("postgresql://", "postgres://"))


def _is_host(text: str) -> bool:
    return _is_address(f"http://[{text}]" if ":" in text else f"http://{text}")


def _is_address(text: str) -> bool:
    parts = http_address(text)
    return parts is not None and not parts.query


def _address(text: str) -> str:
    address = text.rstrip("/")
    if address and not _is_address(address):
        # One with a user may hold a password, and is not repeated.
        shown = "" if "@" in address else f"={address!r}"
        raise ValueError(f"{shown}: give an address like https://example.org.")
    return address


def _hosts(text: str) -> tuple[str, ...]:
    hosts = tuple(entry.lower().removesuffix(".") for entry in _entries(text))
    wrong = [it for it in hosts if it != ANY_HOST and host_name(it) != it]
    if wrong:
        raise ValueError(*(f": {it!r} is no name like portal.example.org." for it in wrong))
    return hosts


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(entry) for entry in _entries(text))
    except ValueError as exc:
        message = f": give addresses or networks like 10.0.0.0/8, fd00::1 ({exc})."
        raise ValueError(message) from exc


def _entries(text: str) -> list[str]:
    return [entry for part in text.split(",") if (entry := part.strip())]


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
        _checked(
            _is_database_url, "give postgresql://user:password@host/database.", is_secret=True
        ),
        words="required",
    )
    s3_endpoint_url: str = _setting("S3 as the portal reaches it; empty for AWS", "", _address)
    s3_public_endpoint_url: str = _setting(
        "S3 as browsers reach it",
        lambda before: before["s3_endpoint_url"],
        _address,
        words="S3_ENDPOINT_URL",
    )
    s3_bucket: str = _setting("bucket for uploads and output", "portal")
    aws_region: str = _setting("region of the bucket", "us-east-1", alias="AWS_DEFAULT_REGION")
    host: str = _setting(
        "address to listen on",
        "127.0.0.1",
        _checked(_is_host, "give an address or a name to listen on."),
    )
    port: int = _integer("port to listen on", 8000, 1, 65535)
    public_url: str = _setting(
        "address people use", _own_address, _address, words="http://HOST:PORT"
    )
    playback_base_url: str = _setting("CDN in front of the bucket", "", _address)
    allowed_hosts: tuple[str, ...] = _setting("further names of the portal", (), _hosts)
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "proxies whose X-Forwarded-For is believed", (), _networks
    )
    web_workers: int = _integer("web processes", 1, 1, 64)
    worker_concurrency: int = _integer("videos a worker transcodes at once", 1, 1, 64)
    worker_prepare_concurrency: int = _integer("files a worker looks into at once", 2, 1, 64)
    database_pool_size: int = _integer("database connections of a process", 8, 2, 200)
    max_connections: int = _integer("connections of a web process", 8000, 10, 1_000_000)
    max_concurrent_requests: int = _integer(
        "requests a web process works on at once", 1000, 10, 100_000
    )
    # Of one client in a minute; 0 for any number.
    rate_limit_changes: int = _integer("changes a minute", 3000, 0, MAX_RATE)
    rate_limit_parts: int = _integer("signed parts a minute", 12_000, 0, MAX_RATE)
    rate_limit_searches: int = _integer("searches a minute", 6000, 0, MAX_RATE)
    rate_limit_reads: int = _integer("other reads a minute", 180_000, 0, MAX_RATE)
    # 0 takes any source. The defaults: 8192x4320, half a day, 100 GB, and a day of encoding.
    max_source_pixels: int = _integer("width times height", 35_389_440, 0, 10**9)
    max_source_duration_s: int = _integer("longest source", 43_200, 0, 10**7)
    max_source_bytes: int = _integer("largest source", 10**11, 0, 10**14)
    max_transcode_s: int = _integer("longest conversion of a source", 86_400, 0, 10**8)
    upload_url_ttl_s: int = _integer("life of an upload address", 3600, 60, MAX_TTL_S)
    playback_url_ttl_s: int = _integer("life of a segment's address", 43_200, 600, MAX_TTL_S)
    keep_jobs_days: int = _integer("days that finished jobs are kept; 0 for ever", 30, 0, 36_500)
    downloads: bool = _switch("whether pages offer the uploaded file")
    metrics_token: str = _setting(
        "bearer token of /metrics",
        "",
        _checked(TOKEN.fullmatch, "give 16 or more letters, digits and -._~+/=.", is_secret=True),
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
