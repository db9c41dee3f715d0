"""Settings from the environment: every fault is named, all at once, and no secret is repeated."""

from dataclasses import fields
from pathlib import Path

import pytest

from portal.config import SETTINGS, Config, ConfigError
from portal.config.values import ROLES
from portal.database.states import Role

TOKEN = "0123456789abcdef"
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


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", DATABASE)
    monkeypatch.setenv("PORT", "9123")
    assert Config.from_env().port == 9123


def test_names_to_answer_to_are_a_list() -> None:
    assert settings().allowed_hosts == ()
    hosts = settings(ALLOWED_HOSTS="Films.example., other.example,,*").allowed_hosts
    assert hosts == ("films.example", "other.example", "*")
    for fault in ("https://films.example", "films.example:8000", "a b", "@x", "a/b"):
        assert "ALLOWED_HOSTS" in faults(ALLOWED_HOSTS=fault)[0]


def test_finished_jobs_are_kept_for_a_month_or_as_long_as_wanted() -> None:
    assert settings().keep_jobs_days == 30
    assert settings(KEEP_JOBS_DAYS="0").keep_jobs_days == 0
    assert "KEEP_JOBS_DAYS" in faults(KEEP_JOBS_DAYS="-1")[0]


def test_quotas_are_lifted_unless_they_are_set() -> None:
    assert (settings().max_videos_per_day, settings().max_stored_bytes) == (0, 0)
    config = settings(MAX_VIDEOS_PER_DAY="10", MAX_STORED_BYTES="20000000000")
    assert (config.max_videos_per_day, config.max_stored_bytes) == (10, 20 * 10**9)
    wrong = faults(MAX_VIDEOS_PER_DAY="-1", MAX_STORED_BYTES="20 GB")
    assert ["MAX_VIDEOS_PER_DAY" in wrong[0], "MAX_STORED_BYTES" in wrong[1]] == [True, True]


def test_audit_log_is_kept_for_a_year_or_as_long_as_wanted() -> None:
    assert settings().audit_days == 365
    assert settings(AUDIT_DAYS="0").audit_days == 0
    assert "AUDIT_DAYS" in faults(AUDIT_DAYS="36501")[0]


def test_limits_of_sources_have_defaults_and_can_be_lifted() -> None:
    config = settings()
    assert config.max_source_pixels == 8192 * 4320
    assert config.max_source_duration_s == 12 * 3600
    assert config.max_source_bytes == 100 * 10**9
    config = settings(MAX_SOURCE_PIXELS="0", MAX_SOURCE_DURATION_S="0", MAX_SOURCE_BYTES="0")
    limits = (config.max_source_pixels, config.max_source_duration_s, config.max_source_bytes)
    assert limits == (0, 0, 0)


def test_proxies_are_addresses_and_networks() -> None:
    assert settings().trusted_proxies == ()
    config = settings(TRUSTED_PROXIES="10.0.0.0/8, 192.0.2.1,fd00::/8")
    assert [str(it) for it in config.trusted_proxies] == ["10.0.0.0/8", "192.0.2.1/32", "fd00::/8"]
    for wrong in ("proxy.example", "10.0.0.1/8", "1", "10.0.0.0/8 10.1.0.0/16", "*"):
        [fault] = faults(TRUSTED_PROXIES=wrong)
        assert fault.startswith("TRUSTED_PROXIES: give addresses or networks like 10.0.0.0/8")


def test_every_setting_is_described_and_its_default_can_be_written_down() -> None:
    assert [it.lower() for it in SETTINGS] == [it.name for it in fields(Config)]
    for variable, setting in SETTINGS.items():
        assert setting.meaning
        if setting.default_words not in ("required", "empty") and not callable(setting.default):
            assert settings(**{variable: setting.default_words}) == settings()


def test_settings_cannot_be_changed_later() -> None:
    with pytest.raises(AttributeError):
        settings().port = 1  # type: ignore[misc]


def test_addresses_lose_their_trailing_slash() -> None:
    config = settings(
        PUBLIC_URL="https://portal.example/", PLAYBACK_BASE_URL="https://cdn.example/v/"
    )
    assert config.public_url == "https://portal.example"
    assert config.playback_base_url == "https://cdn.example/v"


def test_browsers_use_the_storage_address_unless_given_another() -> None:
    config = settings(S3_ENDPOINT_URL="http://s3:9000")
    assert config.s3_public_endpoint_url == "http://s3:9000"
    config = settings(
        S3_ENDPOINT_URL="http://s3:9000", S3_PUBLIC_ENDPOINT_URL="https://files.example"
    )
    assert config.s3_public_endpoint_url == "https://files.example"


def test_blank_variables_count_as_not_given() -> None:
    assert settings(PORT="", HOST=" ", S3_BUCKET="") == settings()


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0.0.0.0", "http://localhost:8000"),  # noqa: S104  # only parsed
        ("::1", "http://[::1]:8000"),
    ],
)
def test_public_address_is_made_of_host_and_port(host: str, address: str) -> None:
    assert settings(HOST=host).public_url == address


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


def test_password_in_any_other_address_is_not_repeated() -> None:
    (fault,) = faults(S3_ENDPOINT_URL="http://user:hunter2@s3.example:port")
    assert "hunter2" not in fault
    assert fault.startswith("S3_ENDPOINT_URL")


SIGN_ON = {
    "OIDC_ISSUER": "https://id.example/realms/films/",
    "OIDC_CLIENT_ID": "portal",
    "OIDC_CLIENT_SECRET": "hunter2",
}


def test_single_sign_on_is_off_until_it_is_asked_for() -> None:
    assert settings().oidc_issuer == ""
    config = settings(**SIGN_ON)
    assert config.oidc_issuer == "https://id.example/realms/films/", "with its slash"
    assert (config.oidc_client_id, config.oidc_client_secret) == ("portal", "hunter2")
    assert (config.oidc_roles, config.oidc_domains, config.oidc_default_role) == ((), (), "")
    assert config.oidc_role_claim == "groups"


@pytest.mark.parametrize("missing", SIGN_ON)
def test_single_sign_on_wants_three_settings_together(missing: str) -> None:
    (fault,) = faults(**{name: it for name, it in SIGN_ON.items() if name != missing})
    assert fault.startswith(f"{missing} is not set: ")
    assert "hunter2" not in fault


def test_single_sign_on_tells_who_may_and_as_what() -> None:
    roles = "portal-admins:admin, urn:x:staff : editor,bosses:owner,"
    config = settings(**SIGN_ON, OIDC_ROLES=roles, OIDC_DOMAINS="Films.example,@b.example")
    assert config.oidc_roles == (
        ("portal-admins", "admin"),
        ("urn:x:staff", "editor"),
        ("bosses", "owner"),
    )
    assert config.oidc_domains == ("films.example", "b.example")
    assert settings(**SIGN_ON, OIDC_DEFAULT_ROLE="viewer").oidc_default_role == "viewer"
    assert (*Role,) == ROLES


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


def test_provider_on_this_machine_may_do_without_tls() -> None:
    for issuer in ("http://127.0.0.1:9400", "http://localhost:9400", "http://[::1]:9400"):
        assert settings(**{**SIGN_ON, "OIDC_ISSUER": issuer}).oidc_issuer == issuer


def test_metrics_are_off_until_they_are_asked_for() -> None:
    assert not settings().metrics
    assert settings(METRICS="on").metrics
    assert settings(METRICS_TOKEN=TOKEN).metrics
    assert not settings(METRICS_TOKEN=TOKEN, METRICS="off").metrics


@pytest.mark.parametrize("where", [{"HOST": "0.0.0.0"}, {"PUBLIC_URL": "https://portal.example"}])  # noqa: S104  # only parsed
def test_metrics_that_others_can_reach_want_a_token(where: dict[str, str]) -> None:
    (fault,) = faults(METRICS="on", **where)
    assert fault.startswith("METRICS_TOKEN is not set")
    assert settings(METRICS="on", METRICS_TOKEN=TOKEN, **where).metrics_token == TOKEN


@pytest.mark.parametrize("token", ["hunter2", "hunter2 hunter2 hunter2", "hunter2" * 100])
def test_bad_token_is_refused_and_not_repeated(token: str) -> None:
    (fault,) = faults(METRICS_TOKEN=token)
    assert fault.startswith("METRICS_TOKEN: give 16")
    assert "hunter2" not in fault
