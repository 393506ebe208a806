from datetime import timedelta

import pytest

from parley.orchestrator.model.retention import Retention
from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.errors import ConfigurationError


def test_debates_are_kept_for_ever_unless_days_are_set() -> None:
    assert Retention().for_tenant("acme") is None


def test_a_tenant_that_is_named_has_days_of_its_own() -> None:
    read = Retention.parse(30, "acme=7, beta=0,gamma=0.5,")
    kept = [read.for_tenant(each) for each in ("acme", "beta", "gamma", "other")]
    assert kept == [timedelta(days=7), None, timedelta(hours=12), timedelta(days=30)]


@pytest.mark.parametrize("text", ["acme", "acme=", "=7", "acme=week", "acme=-1", "acme=1,acme=2", "acme=1e3"])
def test_what_says_no_days_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"TENANT=DAYS|named twice"):
        Retention.parse(0, text)


def test_the_setting_is_named_where_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_RETENTION_TENANTS", "acme")
    with pytest.raises(ConfigurationError, match="PARLEY_RETENTION_TENANTS"):
        OrchestratorSettings.load()
