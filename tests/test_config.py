"""Settings from environment variables: messages name every fault, and repeat no secret."""

from pathlib import Path

import pytest

from portal.config import SETTINGS, Config, ConfigError, misspelt_variables

DATABASE = "postgresql://portal:secret@db.example/portal"
SECRET = "hunter2"
SIGN_ON = {
    "OIDC_ISSUER": "https://id.example/realms/films/",
    "OIDC_CLIENT_ID": "portal",
    "OIDC_CLIENT_SECRET": SECRET,
}
# Invalid values by variable.
INVALID = {
    "HOST": (":", "[", "a:b", "a b/c?d", "http://x"),
    "PORT": ("0", "65536", "80.0", "-1", "٨٠", "9" * 5_000),
    "WORKER_CONCURRENCY": ("0", "many"),
    "DATABASE_POOL_SIZE": ("1",),
    "MAX_SOURCE_PIXELS": ("8192x4320",),
    "MAX_SOURCE_BYTES": ("1000000000000000",),
    "UPLOAD_URL_TTL_S": ("604801", "-1", "1h"),
    "S3_ENDPOINT_URL": ("s3.example", "ftp://s3.example"),
    "PUBLIC_URL": ("https://", "https://portal.example?a=b", "https://a.example:x", "http://[::1"),
    "PLAYBACK_BASE_URL": ("//cdn.example",),
    "SITE_LINKS": (
        "Imprint",
        "https://example.org/imprint",
        "Imprint ftp://example.org",
        f"{'I' * 41} https://example.org",
        "Im\u202eprint https://example.org",
        ", ".join(["Imprint https://example.org"] * 9),
    ),
    "METRICS": ("yes",),
    "LOG_LEVEL": ("LOUD",),
    "DATABASE_URL": (f"mysql://a:{SECRET}@db/a", f"postgresql://a:{SECRET}@db/a?nonsense=1"),
    "METRICS_TOKEN": (SECRET, " ".join([SECRET] * 3), SECRET * 100),
    "OIDC_ISSUER": (
        "id.example",
        "https://",
        "ftp://id.example",
        "http://id.example",
        "https://id.example?a=b",
        "https://a#b",
        f"https://u:{SECRET}@id.example",
    ),
    "OIDC_ROLES": ("staff", "staff:boss", ":editor", "a:editor,b", "a:"),
    "OIDC_DOMAINS": ("*", "https://films.example", "a b", "ann@b.example"),
    "OIDC_DEFAULT_ROLE": ("owner", "admin", "boss"),
}


def test_misspelt_settings_are_named_and_other_variables_are_not() -> None:
    misspelt = {
        "PUBLIC_URI": "PUBLIC_URL",
        "EMBED_ORIGIN": "EMBED_ORIGINS",
        "WORKER_CONCURENCY": "WORKER_CONCURRENCY",
        "TRUSTED_PROXY": "TRUSTED_PROXIES",
        "S3_ENDPOINT": "S3_ENDPOINT_URL",
        "LOGLEVEL": "LOG_LEVEL",
        "site_name": "SITE_NAME",
    }
    others = ("HOSTNAME", "PWD", "USER", "PORTAL_URL", "AWS_ENDPOINT_URL", "KUBERNETES_PORT")
    messages = list(misspelt_variables(dict.fromkeys([*misspelt, *SETTINGS, *others], "x")))
    assert messages == [
        f"{name} is no setting, so it has no effect. Is {meant} meant?"
        for name, meant in misspelt.items()
    ]


def settings(**environ: str) -> Config:
    return Config.from_env({"DATABASE_URL": DATABASE, **environ})


def faults(**environ: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        settings(**environ)
    assert all(fault in str(raised.value) for fault in raised.value.faults)
    return raised.value.faults


def test_only_the_database_url_is_required() -> None:
    config = settings()
    assert config.database_url == DATABASE
    assert config.public_url == "http://127.0.0.1:8000"
    assert config.s3_endpoint_url == config.s3_public_endpoint_url == ""
    assert config.work_dir == Path("work")
    with pytest.raises(ConfigError, match=r"DATABASE_URL is not set.*portal up"):
        Config.from_env({})


@pytest.mark.parametrize("name", INVALID)
def test_message_names_the_variable_and_repeats_no_secret(name: str) -> None:
    for value in INVALID[name]:
        (fault,) = faults(**{**(SIGN_ON if name.startswith("OIDC") else {}), name: value})
        assert fault.startswith((f"{name}=", f"{name}:")), value[:100]
        assert fault.endswith(".")
        assert SECRET not in fault


def test_traces_require_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.config.find_spec", lambda _: None)
    (fault,) = faults(OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318")
    assert "pip install 'portal[otel]'" in fault


def test_all_faults_are_reported_at_once() -> None:
    names = {"DATABASE_URL": "mysql://x", "PORT": "x", "PUBLIC_URL": "x", "LOG_LEVEL": "x"}
    messages = faults(**names)
    variables = [message.partition("=")[0].partition(":")[0] for message in messages]
    assert sorted(variables) == sorted(names)


@pytest.mark.parametrize("missing", SIGN_ON)
def test_single_sign_on_requires_three_settings(missing: str) -> None:
    (fault,) = faults(**{name: value for name, value in SIGN_ON.items() if name != missing})
    assert fault.startswith(f"{missing} is not set: ")
    assert SECRET not in fault
