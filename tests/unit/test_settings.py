"""Each function's environment: read in one place, and refused by variable, rule and fix."""

from pathlib import Path

import pytest

from stopline.redact import MARK, redact
from stopline.settings import SettingsError, migrator_settings, monitor_settings, poller_settings, service_name

GOOD = {
    "STOPLINE_DB_HOST": "db.example",
    "STOPLINE_DB_PORT": "5432",
    "STOPLINE_DB_NAME": "app",
    "STOPLINE_DB_USER": "stopline_worker",
    "STOPLINE_DB_AUTH": "iam",
    "STOPLINE_INSTALLATION": "prod",
    "STOPLINE_KINDS": "close_conversation, accounting_export",
    "STOPLINE_ROLE_CLOSE_CONVERSATION": "closer",
    "AWS_REGION": "eu-central-1",
    "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/01/[$LATEST]abc",
}


def given(folder: Path, **changes: str | None) -> dict[str, str]:
    values = {**GOOD, "STOPLINE_JOBS_DIR": str(folder), "STOPLINE_SQL_DIR": str(folder), **changes}
    return {name: value for name, value in values.items() if value is not None}


def test_a_poller_learns_its_database_kinds_roles_and_name(tmp_path: Path) -> None:
    settings = poller_settings(given(tmp_path))
    target = settings.target
    assert (target.host, target.port, target.dbname, target.user) == ("db.example", 5432, "app", "stopline_worker")
    assert (target.auth, target.region) == ("iam", "eu-central-1")
    assert target.application_name == "stopline-poller"
    assert settings.kinds == ("close_conversation", "accounting_export")
    assert settings.roles == {"close_conversation": "closer"}
    assert settings.worker == "2026/01/01/[$LATEST]abc"


def test_a_database_on_aws_is_verified_by_amazons_roots_unless_others_are_named(tmp_path: Path) -> None:
    """CO-14: the bundle ships in the layer, so that nothing has to be set for it to be found."""
    shipped = poller_settings(given(tmp_path)).target.sslrootcert
    assert shipped is not None
    assert Path(shipped).name == "aws-rds.pem"
    assert "BEGIN CERTIFICATE" in Path(shipped).read_text()
    (tmp_path / "own.pem").touch()
    own = str(tmp_path / "own.pem")
    assert poller_settings(given(tmp_path, STOPLINE_DB_SSLROOTCERT=own)).target.sslrootcert == own
    local = given(tmp_path, STOPLINE_DB_AUTH="none")
    assert poller_settings(local).target.sslrootcert is None


def test_jobs_see_the_environment_without_our_variables_and_credentials(tmp_path: Path) -> None:
    environment = poller_settings(given(tmp_path, URL="http://x", AWS_SESSION_TOKEN="secret")).environment
    assert environment["URL"] == "http://x"
    assert [name for name in environment if name.startswith("STOPLINE_") or name == "AWS_SESSION_TOKEN"] == []
    with pytest.raises(TypeError):
        environment["URL"] = "changed"  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ACCOUNTING_TOKEN", "abc0123456789", True),
        ("DbPassword", "hunter2hunter2", True),
        ("STRIPE_API_KEY", "live_0123456789", True),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI0", True),
        ("ACCOUNTING_URL", "https://accounting.example.com", False),
        ("USE_TOKEN", "true", False),
        ("TOKEN_URL", "https://tokens.example.com", False),
    ],
)
def test_values_that_are_secrets_by_their_name_are_taken_out_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, secret: bool
) -> None:
    monkeypatch.setattr("stopline.redact._registered", set())
    monkeypatch.setattr("stopline.redact._registered_pattern", None)
    poller_settings(given(tmp_path, **{name: value}))
    assert redact(f"it said {value}, twice") == f"it said {MARK if secret else value}, twice"


@pytest.mark.parametrize(
    ("variable", "value", "rule"),
    [
        ("STOPLINE_DB_HOST", None, "is required and not set"),
        ("STOPLINE_DB_NAME", " ", "is required and not set"),
        ("STOPLINE_DB_USER", "", "is required and not set"),
        ("STOPLINE_DB_PORT", "54a", "must be a port from 1 to 65535, not '54a'"),
        ("STOPLINE_DB_PORT", "0", "must be a port from 1 to 65535"),
        ("STOPLINE_DB_PORT", "9" * 5000, "must be a port from 1 to 65535"),
        ("STOPLINE_DB_PORT", None, "must be a port from 1 to 65535"),
        ("STOPLINE_DB_AUTH", "password", "must be none or iam, not 'password'"),
        ("STOPLINE_DB_AUTH", None, "must be none or iam"),
        ("STOPLINE_DB_SSLROOTCERT", "/no/such/roots.pem", "'/no/such/roots.pem' is not a file"),
        ("AWS_REGION", None, "is required with STOPLINE_DB_AUTH=iam"),
        ("STOPLINE_INSTALLATION", None, "is required and not set"),
        ("STOPLINE_KINDS", None, "is required and not set"),
        ("STOPLINE_KINDS", "close,,export", "'' is not a kind's name"),
        ("STOPLINE_KINDS", "../etc", "'../etc' is not a kind's name"),
        ("STOPLINE_KINDS", "a,a", "names a kind twice"),
        ("STOPLINE_JOBS_DIR", "/no/such/folder", "'/no/such/folder' is not a folder"),
    ],
)
def test_a_missing_or_bad_value_is_refused_by_variable_and_rule(
    tmp_path: Path, variable: str, value: str | None, rule: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        poller_settings(given(tmp_path, **{variable: value}))
    assert refusal.value.variable == variable
    assert str(refusal.value).startswith(f"{variable}: {rule}")


def test_each_function_asks_only_for_what_it_uses(tmp_path: Path) -> None:
    env = given(tmp_path, STOPLINE_KINDS=None, STOPLINE_JOBS_DIR=None, STOPLINE_SQL_DIR=None)
    assert monitor_settings(env).target.application_name == "stopline-monitor"
    with pytest.raises(SettingsError, match="STOPLINE_SQL_DIR"):
        migrator_settings(env)


def test_a_deployments_metrics_bear_its_own_name_and_the_projects_without_one() -> None:
    assert service_name({"STOPLINE_SERVICE": "Staging"}) == "Staging"
    assert service_name({}) == service_name({"STOPLINE_SERVICE": ""}) == "stopline"
