"""Settings from the environment: every fault is named, all at once, and no secret is repeated."""

from dataclasses import fields
from pathlib import Path

import pytest

from portal.config import SETTINGS, Config, ConfigError

DATABASE = "postgresql://portal:secret@db.example/portal"


def settings(**environ: str) -> Config:
    return Config.from_env({"DATABASE_URL": DATABASE, **environ})


def faults(**environ: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        settings(**environ)
    assert all(fault in str(raised.value) for fault in raised.value.faults)
    return raised.value.faults


def test_database_address_alone_is_enough() -> None:
    config = settings()
    assert config.database_url == DATABASE
    assert config.public_url == "http://127.0.0.1:8000"
    assert config.s3_endpoint_url == config.s3_public_endpoint_url == ""
    assert config.playback_base_url == ""
    assert config.upload_url_ttl_s == 3600
    assert config.work_dir == Path("work")


def test_every_setting_is_described_and_its_default_can_be_written_down() -> None:
    assert [it.lower() for it in SETTINGS] == [it.name for it in fields(Config)]
    for variable, setting in SETTINGS.items():
        assert setting.meaning
        if setting.default_words not in ("required", "empty") and not callable(setting.default):
            assert settings(**{variable: setting.default_words}) == settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("HOST", value) for value in (":", "[", "a:b", "a b/c?d", "http://x")),
        *(("PORT", value) for value in ("0", "65536", "80.0", "-1", "٨٠")),
        pytest.param("PORT", "9" * 5_000, id="PORT-of-5000-digits"),
        ("WEB_WORKERS", "0"),
        ("WORKER_CONCURRENCY", "many"),
        ("DATABASE_POOL_SIZE", "1"),
        ("MAX_SOURCE_PIXELS", "8192x4320"),
        ("MAX_SOURCE_DURATION_S", "-1"),
        ("MAX_SOURCE_BYTES", "1000000000000000"),
        ("UPLOAD_URL_TTL_S", "604801"),
        ("PLAYBACK_URL_TTL_S", "1h"),
        ("S3_ENDPOINT_URL", "s3.example"),
        ("S3_PUBLIC_ENDPOINT_URL", "ftp://s3.example"),
        *(("PUBLIC_URL", value) for value in ("https://", "https://portal.example?a=b")),
        *(("PUBLIC_URL", value) for value in ("https://portal.example:x", "http://[::1")),
        ("PLAYBACK_BASE_URL", "//cdn.example"),
        ("METRICS", "yes"),
        ("LOG_LEVEL", "LOUD"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_bad_value_is_named(name: str, value: str) -> None:
    (fault,) = faults(**{name: value})
    assert fault.startswith(f"{name}=")
    assert fault.endswith(".")


def test_missing_database_address_says_what_to_do() -> None:
    with pytest.raises(ConfigError) as raised:
        Config.from_env({})
    (fault,) = raised.value.faults
    assert fault.startswith("DATABASE_URL is not set")
    assert "portal up" in fault


def test_all_faults_are_listed_at_once() -> None:
    found = faults(
        DATABASE_URL="mysql://x", PORT="x", PUBLIC_URL="x", LOG_LEVEL="x", WEB_WORKERS="x"
    )
    names = [fault.partition("=")[0].partition(":")[0] for fault in found]
    assert sorted(names) == ["DATABASE_URL", "LOG_LEVEL", "PORT", "PUBLIC_URL", "WEB_WORKERS"]


@pytest.mark.parametrize(
    "address",
    ["mysql://portal:hunter2@db/portal", "postgresql://portal:hunter2@db/portal?nonsense=1"],
)
def test_password_of_the_database_is_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(DATABASE_URL=address)
    assert "hunter2" not in str(raised.value)
    assert raised.value.faults[0].startswith("DATABASE_URL")


SIGN_ON = {
    "OIDC_ISSUER": "https://id.example/realms/films/",
    "OIDC_CLIENT_ID": "portal",
    "OIDC_CLIENT_SECRET": "hunter2",
}


@pytest.mark.parametrize("missing", SIGN_ON)
def test_single_sign_on_wants_three_settings_together(missing: str) -> None:
    (fault,) = faults(**{name: it for name, it in SIGN_ON.items() if name != missing})
    assert fault.startswith(f"{missing} is not set: ")
    assert "hunter2" not in fault


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("OIDC_ISSUER", value) for value in ("id.example", "https://", "ftp://id.example")),
        *(("OIDC_ISSUER", value) for value in ("http://id.example", "https://id.example?a=b")),
        *(("OIDC_ISSUER", value) for value in ("https://u:hunter2@id.example", "https://a#b")),
        *(
            ("OIDC_ROLES", value)
            for value in ("staff", "staff:boss", ":editor", "a:editor,b", "a:")
        ),
        *(
            ("OIDC_DOMAINS", value)
            for value in ("*", "https://films.example", "a b", "ann@b.example")
        ),
        *(("OIDC_DEFAULT_ROLE", value) for value in ("owner", "admin", "boss")),
    ],
)
def test_bad_setting_of_single_sign_on_is_named(name: str, value: str) -> None:
    (fault,) = faults(**{**SIGN_ON, name: value})
    assert fault.startswith((f"{name}=", f"{name}:"))
    assert fault.endswith(".")
    assert "hunter2" not in fault


@pytest.mark.parametrize("token", ["hunter2", "hunter2 hunter2 hunter2", "hunter2" * 100])
def test_bad_token_is_refused_and_not_repeated(token: str) -> None:
    (fault,) = faults(METRICS_TOKEN=token)
    assert fault.startswith("METRICS_TOKEN: give 16")
    assert "hunter2" not in fault
