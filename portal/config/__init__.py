"""Settings, read once from the environment (12-factor) into a frozen value.

`Config` is the table of settings: each field is the variable of the same name in capitals, with its
default and its values; docs/configuration.md says what each is for. `values` has how texts are
read. Only this module reads `os.environ` for settings; AWS credentials stay with
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
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.config import values
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
    """How one variable is read.

    `default` is a value, or makes one from the settings before it. `parse` raises `ValueError` with
    what follows the variable's name in a message, once for each fault. `alias` names another
    variable that counts when this one is not set.
    """

    default: Any
    parse: Callable[[str], Any] = str
    alias: str = ""

    def read(self, variable: str, environ: Mapping[str, str], faults: list[str]) -> Any:
        """The parsed value, or None when the variable is not set or is at fault."""
        text = environ.get(variable, "").strip() or environ.get(self.alias, "").strip()
        try:
            value = self.parse(text) if text else ""
        except ValueError as exc:
            faults += [f"{variable}{fault}" for fault in exc.args]
            return None
        return None if value == "" else value


def _setting(default: Any, parse: Callable[[str], Any] = str, *, alias: str = "") -> Any:
    return field(metadata={"setting": Setting(default, parse, alias)})


def _integer(default: int, low: int, high: int) -> Any:
    def is_good(text: str) -> bool:
        number = whole_number(text, max_digits=MAX_DIGITS)
        return number is not None and low <= number <= high

    return _setting(
        default, values.checked(is_good, f"give a whole number from {low} to {high}.", int)
    )


def _choice(default: str, *choices: str) -> Any:
    return _setting(default, values.one_of(choices))


def _switch(default: Any = False) -> Any:
    return _setting(default, values.one_of(("on", "off"), "on".__eq__))


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
        "",
        values.checked(
            values.is_database_url, "give postgresql://user:password@host/database.", is_secret=True
        ),
    )
    # S3 as the portal reaches it, empty for AWS; and as browsers do.
    s3_endpoint_url: str = _setting("", values.read_address)
    s3_public_endpoint_url: str = _setting(itemgetter("s3_endpoint_url"), values.read_address)
    s3_bucket: str = _setting("portal")
    aws_region: str = _setting("us-east-1", alias="AWS_DEFAULT_REGION")
    host: str = _setting(
        "127.0.0.1", values.checked(values.is_host, "give an address or a name to listen on.")
    )
    port: int = _integer(8000, 1, 65535)
    # The address that people use.
    public_url: str = _setting(_own_address, values.read_address)
    # A CDN in front of the bucket.
    playback_base_url: str = _setting("", values.read_address)
    # Sites that may show a player in a frame.
    embed_origins: tuple[str, ...] = _setting((values.ANY_SITE,), values.read_sites)
    default_visibility: str = _choice("public", "public", "unlisted", "private")
    site_name: str = _setting(
        "Portal",
        values.checked(lambda text: len(text) <= MAX_NAME, f"give at most {MAX_NAME} characters."),
    )
    site_accent: str = _setting("", values.read_accent)
    site_logo: Path | None = _setting(None, values.read_logo)  # noqa: RUF009  # makes a field
    # Further names of the portal.
    allowed_hosts: tuple[str, ...] = _setting((), values.read_hosts)
    # Of pages of other sites that may use the API, by tokens alone.
    api_allowed_origins: tuple[str, ...] = _setting((), values.read_origins)
    # Those whose X-Forwarded-For is believed.
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting((), values.read_networks)
    # Where requests to addresses that people typed in may go besides the Internet.
    outgoing_networks: tuple[IPv4Network | IPv6Network, ...] = _setting((), values.read_networks)
    outgoing_allow_http: bool = _switch()
    web_workers: int = _integer(1, 1, 64)
    # Videos that a worker transcodes, and files that it looks into, at once.
    worker_concurrency: int = _integer(1, 1, 64)
    worker_prepare_concurrency: int = _integer(2, 1, 64)
    # 0 takes those that its cgroup, or the machine, has.
    worker_cores: int = _integer(0, 0, 1024)
    # Of each process.
    database_pool_size: int = _integer(8, 2, 200)
    max_concurrent_requests: int = _integer(1000, 10, 100_000)
    # Of one client in a minute; 0 for any number.
    rate_limit_changes: int = _integer(12_000, 0, MAX_RATE)
    rate_limit_searches: int = _integer(6000, 0, MAX_RATE)
    rate_limit_sign_ins: int = _integer(300, 0, MAX_RATE)
    # 0 takes any source. The defaults: 8192x4320, half a day, 100 GB, and a day of encoding.
    max_source_pixels: int = _integer(35_389_440, 0, 10**9)
    max_source_duration_s: int = _integer(43_200, 0, 10**7)
    max_source_bytes: int = _integer(10**11, 0, 10**14)
    max_transcode_s: int = _integer(86_400, 0, 10**8)
    # Of an account; 0 for any number.
    max_videos_per_day: int = _integer(0, 0, 10**6)
    max_stored_bytes: int = _integer(0, 0, 10**14)
    # How long signed addresses are good.
    upload_url_ttl_s: int = _integer(3600, 60, MAX_TTL_S)
    playback_url_ttl_s: int = _integer(3600, 600, MAX_TTL_S)
    # 0 keeps finished jobs, and the audit log, for ever.
    keep_jobs_days: int = _integer(30, 0, 36_500)
    audit_days: int = _integer(365, 0, 36_500)
    # Whether pages offer the uploaded file.
    downloads: bool = _switch()
    oidc_issuer: str = _setting("", values.read_issuer)
    oidc_client_id: str = _setting("")
    oidc_client_secret: str = _setting("")
    # The claim that has a person's groups, and which of them are which role.
    oidc_role_claim: str = _setting("groups")
    oidc_roles: tuple[tuple[str, str], ...] = _setting((), values.read_roles)
    oidc_domains: tuple[str, ...] = _setting((), values.read_domains)
    # Of newcomers. Admins are made on purpose.
    oidc_default_role: str = _choice("", *values.ROLES[2:])
    metrics_token: str = _setting(
        "",
        values.checked(
            TOKEN.fullmatch, "give 16 or more letters, digits and -._~+/=.", is_secret=True
        ),
    )
    metrics: bool = _switch(lambda before: bool(before["metrics_token"]))
    log_level: str = _choice("INFO", "DEBUG", "INFO", "WARNING", "ERROR")
    log_format: str = _choice("json", "json", "text")
    # A folder with a Whisper model, for speech to text.
    captions_model: Path | None = _setting(None, values.read_model)  # noqa: RUF009  # makes a field
    work_dir: Path = _setting(Path("work"), Path)  # noqa: RUF009  # makes a field
    # In which `portal up` names its processes that keep failing.
    failing_processes_file: Path | None = _setting(None, Path)  # noqa: RUF009  # makes a field

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """Read the settings, or raise `ConfigError` listing every fault at once."""
        environ = os.environ if environ is None else environ
        faults = list(_tracing_faults(environ))
        found: dict[str, Any] = {}
        for variable, setting in SETTINGS.items():
            value = setting.read(variable, environ, faults)
            if value is None:
                value = setting.default(found) if callable(setting.default) else setting.default
            found[variable.lower()] = value
        faults += _missing(found, environ)
        if faults:
            raise ConfigError(faults)
        return cls(**found)


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


def _missing(found: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    """Settings that are needed, by themselves or because of others."""
    if not environ.get("DATABASE_URL", "").strip():
        yield (
            "DATABASE_URL is not set: give postgresql://user:password@host/database, "
            "or run `portal up`, which brings its own database."
        )
    if any(found[name.lower()] for name in OIDC_NEEDED):
        for name in OIDC_NEEDED:
            if not found[name.lower()] and not environ.get(name, "").strip():
                yield f"{name} is not set: single sign-on wants {', '.join(OIDC_NEEDED)}."
    if found["captions_model"] and not find_spec("faster_whisper"):
        yield (
            "CAPTIONS_MODEL asks for speech to text: install what that needs with "
            "`pip install 'portal[captions]'`, or don't set it."
        )
    # Any other public address means a proxy in front, through which others can ask.
    is_local = {found["host"], urlsplit(found["public_url"]).hostname} <= values.LOOPBACK
    if found["metrics"] and not environ.get("METRICS_TOKEN", "").strip() and not is_local:
        yield "METRICS_TOKEN is not set: METRICS=on wants it, others can ask."


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")


def _is_otel_installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{name}") for name in OTEL_PACKAGES)
    except ModuleNotFoundError:
        return False
