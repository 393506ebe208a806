from pathlib import Path
from typing import ClassVar

import pytest

from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import OPEN
from parley.runtime.settings import ServiceSettings

SECRET = "s" * 32


class Inner(ServiceSettings):
    pass


class Outer(ServiceSettings):
    internal: ClassVar[bool] = False


def read_refusal(settings: type[ServiceSettings]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        settings.load()
    return str(caught.value)


def set_variables(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLEY_{name.upper()}", value)


@pytest.mark.parametrize("settings", [Inner, Outer])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "127.9.9.9"])
def test_on_this_machine_alone_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, settings: type[ServiceSettings], host: str
) -> None:
    set_variables(monkeypatch, host=host)
    assert settings.load().server().guard is OPEN


@pytest.mark.parametrize("settings", [Inner, Outer])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.168.1.1", "parley", "localhost.evil"])
def test_other_machines_are_not_listened_to_without_asking_and_without_tls_unless_a_setting_says_so(
    monkeypatch: pytest.MonkeyPatch, settings: type[ServiceSettings], host: str
) -> None:
    set_variables(monkeypatch, host=host)
    assert "PARLEY_AUTH=none" in read_refusal(settings)
    assert "PARLEY_TLS=off" in read_refusal(settings)
    set_variables(monkeypatch, auth="none")
    assert "PARLEY_AUTH" not in read_refusal(settings)
    set_variables(monkeypatch, tls="off")
    assert settings.load().server().guard is OPEN


def test_an_internal_service_with_a_secret_asks_and_the_orchestrator_asks_where_a_way_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_variables(monkeypatch, service_secret=SECRET)
    assert Inner.load().requires_credentials
    assert not Outer.load().requires_credentials
    set_variables(monkeypatch, auth="key,jwt")
    assert Outer.load().requires_credentials
    assert Outer.load().guard() is not OPEN
    set_variables(monkeypatch, auth="none")
    assert not Inner.load().requires_credentials


def test_an_internal_service_lets_nobody_in_by_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, auth="key")
    with pytest.raises(ConfigurationError, match="only other services may call"):
        Inner.load().server()


def test_what_is_of_use_together_is_set_together(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(
        monkeypatch, tls_certificate="a.pem", auth="mtls", service_secret_file="f", service_secret=SECRET
    )
    message = read_refusal(Outer)
    for part in ("PARLEY_TLS_KEY", "PARLEY_MTLS_RULES", "set one of them"):
        assert part in message


def test_rules_for_certificates_are_read_with_the_authority_that_signs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_variables(monkeypatch, auth="mtls", tls_certificate="a.pem", tls_key="a.key", tls_client_ca="ca.pem")
    rules = '[{"subject": "uri:spiffe://mesh/*", "roles": ["service"]}, {"subject": "dns:*.a", "tenant": "a", "roles": ["read"]}]'
    set_variables(monkeypatch, mtls_rules=rules)
    for settings in (Inner, Outer):
        loaded = settings.load()
        assert [each.rule().tenant for each in loaded.mtls_rules] == ["default", "a"]
        assert loaded.guard() is not OPEN


def test_a_rule_without_the_kind_of_its_name_is_refused_in_one_line_that_says_what_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_variables(monkeypatch, mtls_rules='[{"subject": "spiffe://mesh/*", "roles": ["service"]}]')
    message = read_refusal(Outer)
    assert "PARLEY_MTLS_RULES" in message
    assert "(this one: uri:)" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("auth", "password"),
        ("auth", "none,key"),
        ("service_secret", "short"),
        ("tls", "on"),
        ("mtls_rules", '[{"subject": "dns:a", "roles": ["root"]}]'),
        ("mtls_rules", '[{"subject": "dns:a", "tenant": "a/b", "roles": ["read"]}]'),
        ("mtls_rules", '[{"subject": "dns:a", "roles": []}]'),
        ("mtls_rules", '[{"subject": "spiffe://a/*", "roles": ["read"]}]'),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    set_variables(monkeypatch, **{variable: value})
    assert f"PARLEY_{variable.upper()}" in read_refusal(Outer)
    assert SECRET not in read_refusal(Outer)


def test_a_secret_in_a_file_is_read_again_when_it_changes_and_a_short_one_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    set_variables(monkeypatch, service_secret_file=str(file))
    with pytest.raises(ConfigurationError, match="PARLEY_SERVICE_SECRET_FILE"):
        Inner.load().guard()
    file.write_text("short\n")
    with pytest.raises(ConfigurationError, match="32 characters"):
        Inner.load().guard()
    file.write_text(f"{SECRET}\n")
    assert Inner.load().guard() is not OPEN
