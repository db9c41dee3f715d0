"""Settings, read once from environment variables into a frozen value.

`Config` is the table of settings: each field is read from the variable of the same name in
capitals; docs/configuration.md describes them. `values` parses texts. Only this module reads
`os.environ` for settings; AWS credentials are left to botocore's chain (environment, profile,
instance role). One error reports all invalid variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.config import values
from portal.text import whole_number

MAX_DIGITS = 15
# Fits beside three links on a phone.
MAX_NAME = 40
MAX_RATE = 100_000_000
# Signature Version 4 allows at most seven days.
MAX_TTL_S = 604_800
# Bearer tokens as in RFC 6750, long enough not to be guessed.
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
OIDC_NEEDED = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")

OTEL_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTEL_PROTOCOL = "http/protobuf"
OTEL_PACKAGES = ("exporter.otlp.proto.http", "instrumentation.asgi", "instrumentation.psycopg")


class ConfigError(Exception):
    """Error for missing and invalid environment variables, with a message for each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("Invalid settings:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Setting:
    """Parser and default of one variable.

    `default` is a value, or a function of the settings above it. `parse` raises `ValueError` with
    one message for each fault, to which the variable's name is prepended. `alias` is the name of
    another variable that is used if this one is not set.
    """

    default: Any
    parse: Callable[[str], Any] = str
    alias: str = ""

    def read(self, variable: str, environ: Mapping[str, str], faults: list[str]) -> Any:
        """Return the parsed value; None if the variable is not set or invalid."""
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

    remedy = f"use a whole number from {low} to {high}."
    return _setting(default, values.checked(is_good, remedy, int))


def _choice(default: str, *choices: str) -> Any:
    return _setting(default, values.one_of(choices))


def _switch(default: Any = False) -> Any:
    return _setting(default, values.one_of(("on", "off"), "on".__eq__))


def _own_address(before: Mapping[str, Any]) -> str:
    # A wildcard address can't be opened in a browser.
    host = "localhost" if before["host"] in ("0.0.0.0", "::") else before["host"]  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{before['port']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of the web server, the worker and the commands; URLs have no trailing slash."""

    database_url: str = _setting(
        "",
        values.checked(
            values.is_database_url, "use postgresql://user:password@host/database.", is_secret=True
        ),
    )
    # URL of the S3 server for the portal, empty for AWS, and for browsers.
    s3_endpoint_url: str = _setting("", values.read_address)
    s3_public_endpoint_url: str = _setting(itemgetter("s3_endpoint_url"), values.read_address)
    s3_bucket: str = _setting("portal")
    aws_region: str = _setting("us-east-1", alias="AWS_DEFAULT_REGION")
    host: str = _setting(
        "127.0.0.1", values.checked(values.is_host, "use an IP address or a name to listen on.")
    )
    port: int = _integer(8000, 1, 65535)
    # URL that people use.
    public_url: str = _setting(_own_address, values.read_address)
    # URL of a CDN in front of the bucket; without one the portal signs the URLs of segments.
    playback_base_url: str = _setting("", values.read_address)
    # Sites that may embed the player in a frame.
    embed_origins: tuple[str, ...] = _setting((values.ANY_SITE,), values.read_sites)
    default_visibility: str = _choice("public", "public", "unlisted", "private")
    site_name: str = _setting(
        "Portal",
        values.checked(lambda text: len(text) <= MAX_NAME, f"use at most {MAX_NAME} characters."),
    )
    # Code of the language of pages for readers whose own is not available.
    site_language: str = _setting(
        "en", values.checked(values.is_language, "use a code such as en, de, es, fr or it.")
    )
    site_accent: str = _setting("", values.read_accent)
    site_logo: Path | None = _setting(None, values.read_logo)  # noqa: RUF009  # makes a field
    # Names and URLs, such as those of an imprint.
    site_links: tuple[tuple[str, str], ...] = _setting((), values.read_links)
    # Additional host names of the portal.
    allowed_hosts: tuple[str, ...] = _setting((), values.read_hosts)
    # Origins of other sites' pages that may use the API, with tokens only.
    api_allowed_origins: tuple[str, ...] = _setting((), values.read_origins)
    # Proxies whose X-Forwarded-For is trusted.
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting((), values.read_networks)
    # Private networks that webhooks and imports may connect to.
    outgoing_networks: tuple[IPv4Network | IPv6Network, ...] = _setting((), values.read_networks)
    outgoing_allow_http: bool = _switch()
    web_workers: int = _integer(1, 1, 64)
    # Number of videos that a worker encodes, and of files that it probes, at the same time.
    worker_concurrency: int = _integer(1, 1, 64)
    worker_prepare_concurrency: int = _integer(2, 1, 64)
    # 0 stands for all cores of the cgroup or the machine.
    worker_cores: int = _integer(0, 0, 1024)
    # Limits of each process.
    database_pool_size: int = _integer(8, 2, 200)
    max_concurrent_requests: int = _integer(1000, 10, 100_000)
    # Requests per minute and client; 0 for no limit.
    rate_limit_changes: int = _integer(12_000, 0, MAX_RATE)
    rate_limit_searches: int = _integer(6000, 0, MAX_RATE)
    rate_limit_sign_ins: int = _integer(300, 0, MAX_RATE)
    rate_limit_reports: int = _integer(3000, 0, MAX_RATE)
    rate_limit_downloads: int = _integer(120, 0, MAX_RATE)
    # Largest sources; 0 for no limit. Defaults: 8192x4320, 12 hours, 100 GB, a day of encoding.
    max_source_pixels: int = _integer(35_389_440, 0, 10**9)
    max_source_duration_s: int = _integer(43_200, 0, 10**7)
    max_source_bytes: int = _integer(10**11, 0, 10**14)
    max_transcode_s: int = _integer(86_400, 0, 10**8)
    # Quotas of each account; 0 for no limit.
    max_videos_per_day: int = _integer(0, 0, 10**6)
    max_stored_bytes: int = _integer(0, 0, 10**14)
    # Lifetimes of signed URLs.
    upload_url_ttl_s: int = _integer(3600, 60, MAX_TTL_S)
    playback_url_ttl_s: int = _integer(3600, 600, MAX_TTL_S)
    # Retention of finished jobs and of the audit log; 0 for ever.
    keep_jobs_days: int = _integer(30, 0, 36_500)
    audit_days: int = _integer(365, 0, 36_500)
    # Counts what is watched.
    statistics: bool = _switch(True)
    show_views: bool = _switch(True)
    # Shows the editors of a video who watched it.
    viewer_names: bool = _switch()
    # Files that viewers may save. `on` is an older name of `original`.
    downloads: str = _setting(
        "off",
        values.one_of(
            ("off", "original", "all", "on"), lambda name: "original" if name == "on" else name
        ),
    )
    # Publishes podcast feeds, with a stored file of each video that they name.
    feeds: bool = _switch()
    # Loudness in LUFS that the player makes sound even to; 0 for off.
    loudness: float = _setting(
        -16.0,
        values.checked(
            values.is_loudness,
            "use a number from -31 to -5, or off.",
            lambda text: 0.0 if text == "off" else float(text),
        ),
    )
    # OpenID Connect provider for single sign-on.
    oidc_issuer: str = _setting("", values.read_issuer)
    oidc_client_id: str = _setting("")
    oidc_client_secret: str = _setting("")
    # Claim with a person's groups, and the roles that groups are mapped to.
    oidc_role_claim: str = _setting("groups")
    oidc_roles: tuple[tuple[str, str], ...] = _setting((), values.read_roles)
    oidc_domains: tuple[str, ...] = _setting((), values.read_domains)
    # Role of new people; administrators need a mapped group or an invitation.
    oidc_default_role: str = _choice("", *values.ROLES[2:])
    metrics_token: str = _setting(
        "",
        values.checked(
            TOKEN.fullmatch, "use 16 or more letters, digits and -._~+/=.", is_secret=True
        ),
    )
    metrics: bool = _switch(lambda before: bool(before["metrics_token"]))
    log_level: str = _choice("INFO", "DEBUG", "INFO", "WARNING", "ERROR")
    log_format: str = _choice("json", "json", "text")
    # Folder with a Whisper model for speech to text.
    captions_model: Path | None = _setting(None, values.read_model)  # noqa: RUF009  # makes a field
    work_dir: Path = _setting(Path("work"), Path)  # noqa: RUF009  # makes a field
    # File in which `portal up` names its processes that keep failing.
    failing_processes_file: Path | None = _setting(None, Path)  # noqa: RUF009  # makes a field

    @property
    def has_views(self) -> bool:
        """Return whether viewers see how often a video was watched."""
        return self.statistics and self.show_views

    @property
    def loudness_lufs(self) -> float | None:
        """Return the loudness that sound is made even to; None for sound as it is."""
        return self.loudness or None

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Config:
        """Read all settings; `environ` is the process's environment by default.

        Raises `ConfigError` with all faults.
        """
        environ = os.environ if environ is None else environ
        faults = list(_tracing_faults(environ))
        settings: dict[str, Any] = {}
        for variable, setting in SETTINGS.items():
            value = setting.read(variable, environ, faults)
            if value is None:
                default = setting.default
                value = default(settings) if callable(default) else default
            settings[variable.lower()] = value
        faults += _missing_settings(settings, environ)
        if faults:
            raise ConfigError(faults)
        return cls(**settings)


# Settings by variable, in reading order: defaults may depend on settings above them.
SETTINGS: Mapping[str, Setting] = {
    setting.name.upper(): setting.metadata["setting"] for setting in fields(Config)
}
# Similarity of a misspelt variable's name; HOSTNAME and USER are no settings.
NEAR = 0.8
# Prefixes of settings of the AWS client and OpenTelemetry, which read their own variables.
FOREIGN = ("AWS_", "OTEL_")


def misspelt_variables(environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield a message for each variable that is no setting, but has nearly the name of one.

    Variables of other programs, which have other names, are not reported.
    """
    for name in os.environ if environ is None else environ:
        near = get_close_matches(name.upper(), SETTINGS, n=1, cutoff=NEAR)
        if near and name not in SETTINGS and not name.startswith(FOREIGN):
            yield f"{name} is no setting, so it has no effect. Is {near[0]} meant?"


def is_tracing_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether the environment enables traces, as OpenTelemetry specifies."""
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
    try:
        is_installed = all(find_spec(f"opentelemetry.{name}") for name in OTEL_PACKAGES)
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        yield (
            "OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_ENDPOINT enables traces, but their "
            "packages are missing: run `pip install 'portal[otel]'`, or set "
            "OTEL_TRACES_EXPORTER=none."
        )


def _missing_settings(settings: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a message for each missing setting that the portal or another setting requires.

    `settings` has the parsed values, `environ` the variables as they were set.
    """
    if not environ.get("DATABASE_URL", "").strip():
        yield (
            "DATABASE_URL is not set: use postgresql://user:password@host/database, or the option "
            "--data-dir of commands for a running `portal up`."
        )
    if any(settings[name.lower()] for name in OIDC_NEEDED):
        for name in OIDC_NEEDED:
            if not settings[name.lower()] and not environ.get(name, "").strip():
                yield f"{name} is not set: single sign-on requires {', '.join(OIDC_NEEDED)}."
    if settings["captions_model"] and not find_spec("faster_whisper"):
        yield (
            "CAPTIONS_MODEL enables speech to text, but its packages are missing: run "
            "`pip install 'portal[captions]'`, or unset CAPTIONS_MODEL."
        )
    # Another public host means a proxy, through which other machines can reach /metrics.
    is_local = {settings["host"], urlsplit(settings["public_url"]).hostname} <= values.LOOPBACK
    if settings["metrics"] and not environ.get("METRICS_TOKEN", "").strip() and not is_local:
        yield "METRICS_TOKEN is not set: METRICS=on requires it if others can reach the portal."


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")
