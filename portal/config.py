"""Settings, read once from the environment (12-factor) into a frozen value.

Only this module reads `os.environ` for settings; AWS credentials stay with botocore's own
chain (environment, profile, instance role). Every bad variable is reported in one error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from portal.telemetry import tracing
from portal.web.server.hosts import ANY, host_name

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MAX_DIGITS = 15
MAX_RATE = 100_000_000
LOG_FORMATS = ("json", "text")
# As RFC 6750 has bearer tokens; long enough that nobody guesses it.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ConfigError(Exception):
    """One or more environment variables are missing or wrong."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("Bad configuration:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the web, the worker and the command line need to know.

    Addresses carry no trailing slash. `playback_base_url` is empty when the portal itself
    serves playlists and signs segment addresses.
    """

    database_url: str
    s3_endpoint_url: str
    s3_public_endpoint_url: str
    s3_bucket: str
    aws_region: str
    public_url: str
    playback_base_url: str
    allowed_hosts: tuple[str, ...]
    host: str
    port: int
    web_workers: int
    worker_concurrency: int
    database_pool_size: int
    max_connections: int
    max_concurrent_requests: int
    rate_limit_changes: int
    rate_limit_parts: int
    rate_limit_searches: int
    rate_limit_reads: int
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    max_source_pixels: int
    max_source_duration_s: int
    max_source_bytes: int
    upload_url_ttl_s: int
    playback_url_ttl_s: int
    keep_jobs_days: int
    downloads: bool
    metrics: bool
    metrics_token: str
    log_level: str
    log_format: str
    work_dir: Path

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """Read the settings, or raise `ConfigError` listing every fault at once."""
        reader = _Reader(os.environ if environ is None else environ)
        host = reader.host("HOST", "127.0.0.1")
        # Listening everywhere is no address to open.
        named = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104
        bracketed = f"[{named}]" if ":" in named else named
        port = reader.integer("PORT", 8000, low=1, high=65535)
        endpoint = reader.address("S3_ENDPOINT_URL", "")
        public_url = reader.address("PUBLIC_URL", f"http://{bracketed}:{port}")
        metrics, metrics_token = reader.metrics(is_local=_are_loopback(host, public_url))
        config = cls(
            database_url=reader.database_url("DATABASE_URL"),
            s3_endpoint_url=endpoint,
            s3_public_endpoint_url=reader.address("S3_PUBLIC_ENDPOINT_URL", endpoint),
            s3_bucket=reader.text("S3_BUCKET", "portal"),
            aws_region=reader.text("AWS_REGION", reader.text("AWS_DEFAULT_REGION", "us-east-1")),
            public_url=public_url,
            playback_base_url=reader.address("PLAYBACK_BASE_URL", ""),
            allowed_hosts=reader.hosts("ALLOWED_HOSTS"),
            host=host,
            port=port,
            web_workers=reader.integer("WEB_WORKERS", 1, low=1, high=64),
            worker_concurrency=reader.integer("WORKER_CONCURRENCY", 1, low=1, high=64),
            database_pool_size=reader.integer("DATABASE_POOL_SIZE", 8, low=2, high=200),
            max_connections=reader.integer("MAX_CONNECTIONS", 8000, low=10, high=1_000_000),
            max_concurrent_requests=reader.integer(
                "MAX_CONCURRENT_REQUESTS", 1000, low=10, high=100_000
            ),
            # Of one client in a minute; 0 for any number.
            rate_limit_changes=reader.integer("RATE_LIMIT_CHANGES", 3000, low=0, high=MAX_RATE),
            rate_limit_parts=reader.integer("RATE_LIMIT_PARTS", 12_000, low=0, high=MAX_RATE),
            rate_limit_searches=reader.integer("RATE_LIMIT_SEARCHES", 6000, low=0, high=MAX_RATE),
            rate_limit_reads=reader.integer("RATE_LIMIT_READS", 180_000, low=0, high=MAX_RATE),
            trusted_proxies=reader.networks("TRUSTED_PROXIES"),
            # 0 takes any source. The defaults: 8192x4320, half a day, and 100 GB.
            max_source_pixels=reader.integer(
                "MAX_SOURCE_PIXELS", 35_389_440, low=0, high=1_000_000_000
            ),
            max_source_duration_s=reader.integer(
                "MAX_SOURCE_DURATION_S", 43_200, low=0, high=10_000_000
            ),
            max_source_bytes=reader.integer(
                "MAX_SOURCE_BYTES", 100_000_000_000, low=0, high=100_000_000_000_000
            ),
            # Signature Version 4 allows at most seven days.
            upload_url_ttl_s=reader.integer("UPLOAD_URL_TTL_S", 3600, low=60, high=604_800),
            playback_url_ttl_s=reader.integer("PLAYBACK_URL_TTL_S", 43_200, low=600, high=604_800),
            keep_jobs_days=reader.integer("KEEP_JOBS_DAYS", 30, low=0, high=36_500),
            downloads=reader.choice("DOWNLOADS", "off", ("on", "off")) == "on",
            metrics=metrics,
            metrics_token=metrics_token,
            log_level=reader.choice("LOG_LEVEL", "INFO", LOG_LEVELS),
            log_format=reader.choice("LOG_FORMAT", "json", LOG_FORMATS),
            work_dir=Path(reader.text("WORK_DIR", "work")),
        )
        reader.finish()
        return config


class _Reader:
    """Reads typed variables and collects what is wrong with them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._faults = tracing.faults(environ)

    def finish(self) -> None:
        if self._faults:
            raise ConfigError(self._faults)

    def text(self, name: str, default: str) -> str:
        return self._environ.get(name, "").strip() or default

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        value = self.text(name, default)
        if value not in choices:
            self._faults.append(f"{name}={value!r}: choose one of {', '.join(choices)}.")
        return value

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        value = self.text(name, str(default))
        is_number = value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS
        if not is_number or not low <= int(value) <= high:
            self._faults.append(f"{name}={value!r}: give a whole number from {low} to {high}.")
            return default
        return int(value)

    def networks(self, name: str) -> tuple[IPv4Network | IPv6Network, ...]:
        """Addresses and networks, separated by commas."""
        entries = [entry.strip() for entry in self.text(name, "").split(",")]
        try:
            return tuple(ip_network(entry) for entry in entries if entry)
        except ValueError as exc:
            self._faults.append(
                f"{name}: give addresses or networks like 10.0.0.0/8, fd00::1 ({exc})."
            )
            return ()

    def host(self, name: str, default: str) -> str:
        """An address or a name to listen on."""
        value = self.text(name, default)
        if not _is_http_address(f"http://[{value}]" if ":" in value else f"http://{value}"):
            self._faults.append(f"{name}={value!r}: give an address or a name to listen on.")
            return default
        return value

    def hosts(self, name: str) -> tuple[str, ...]:
        """Names without ports, separated by commas; * for any."""
        named = [entry.strip().lower() for entry in self.text(name, "").split(",")]
        hosts = tuple(entry.removesuffix(".") for entry in named if entry)
        for host in hosts:
            if host != ANY and host_name(host) != host:
                self._faults.append(f"{name}: {host!r} is no name like portal.example.org.")
        return hosts

    def address(self, name: str, default: str) -> str:
        value = self.text(name, "").rstrip("/")
        if value and not _is_http_address(value):
            # One with a user may hold a password, and is not repeated.
            shown = "" if "@" in value else f"={value!r}"
            self._faults.append(f"{name}{shown}: give an address like https://example.org.")
            return default
        return value or default

    def metrics(self, *, is_local: bool) -> tuple[bool, str]:
        """Whether metrics are served, and the token they want, which may be empty."""
        token = self.text("METRICS_TOKEN", "")
        is_on = self.choice("METRICS", "on" if token else "off", ("on", "off")) == "on"
        # The value is not repeated.
        if token and not TOKEN.fullmatch(token):
            self._faults.append("METRICS_TOKEN: give 16 or more letters, digits and -._~+/=.")
        elif is_on and not token and not is_local:
            self._faults.append("METRICS_TOKEN is not set: METRICS=on wants it, others can ask.")
        return is_on, token

    def database_url(self, name: str) -> str:
        value = self.text(name, "")
        if not value:
            self._faults.append(
                f"{name} is not set: give postgresql://user:password@host/database, "
                "or run `portal up`, which brings its own database."
            )
        # The value is not repeated: it holds a password.
        elif not value.startswith(("postgresql://", "postgres://")) or not _is_conninfo(value):
            self._faults.append(f"{name}: give postgresql://user:password@host/database.")
        return value


def _are_loopback(host: str, public_url: str) -> bool:
    """Whether only this machine is served; any other public address means a proxy before it."""
    return {host, urlsplit(public_url).hostname} <= LOOPBACK


def _is_http_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query


def _is_conninfo(value: str) -> bool:
    try:
        conninfo_to_dict(value)
    except ProgrammingError:
        return False
    return True
