"""The orchestrator's settings, where one depends on another or may hold a secret."""

import pytest

from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.errors import ConfigurationError

URL = "https://tracker.example/hooks/s3cret-path"


def loaded(monkeypatch: pytest.MonkeyPatch, **variables: str) -> OrchestratorSettings:
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLEY_{name}", value)
    return OrchestratorSettings.load()


def test_no_follow_up_is_offered_unless_an_address_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(monkeypatch).create_issue_tracker() is None


def test_an_address_is_a_tracker_that_is_named_without_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = loaded(monkeypatch, FOLLOW_UP_URL=URL, FOLLOW_UP_TOKEN="s3cret-token")
    tracker = settings.create_issue_tracker()
    assert tracker is not None
    assert tracker.name == "https://tracker.example"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (
            {"FOLLOW_UP_URL": "ftp://s3cret"},
            "PARLEY_FOLLOW_UP_URL: must begin with http:// or https://, name a host, and hold no space and no @",
        ),
        (
            {"FOLLOW_UP_URL": URL, "FOLLOW_UP_TOKEN": "s3cret\nX-Other: 1"},
            "PARLEY_FOLLOW_UP_TOKEN: must be ASCII without spaces and control characters",
        ),
        (
            {"FOLLOW_UP_TOKEN": "s3cret"},
            "PARLEY_FOLLOW_UP_TOKEN needs PARLEY_FOLLOW_UP_URL: set both, or neither",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        loaded(monkeypatch, **variables)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("advertise", "address"),
    [
        ("", ""),
        ("10.0.0.7:9000", "10.0.0.7:9000"),
        ("10.0.0.7", "10.0.0.7:7401"),
        ("replica.example", "replica.example:7401"),
        ("fd00::1", "[fd00::1]:7401"),
        ("[fd00::1]", "[fd00::1]:7401"),
        ("[fd00::1]:9000", "[fd00::1]:9000"),
    ],
)
def test_other_replicas_reach_this_one_at_what_it_advertises_and_at_its_port_without_one(
    monkeypatch: pytest.MonkeyPatch, advertise: str, address: str
) -> None:
    assert loaded(monkeypatch, ADVERTISE=advertise).resolve_address() == address
