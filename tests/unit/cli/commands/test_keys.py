"""API keys on the command line: made, listed and revoked in the store of PARLEY_STORE, or at a server."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.__main__ import run
from parley.cli.terminal.words import local_time_text
from parley.runtime.errors import not_found
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from parley.v1.key_pb2 import (
    ApiKey,
    CreateKeyRequest,
    CreateKeyResponse,
    ListKeysRequest,
    ListKeysResponse,
    RevokeKeyRequest,
    RevokeKeyResponse,
)
from tests.support.scripted_orchestrator import ScriptedOrchestrator, refuse, scripted


@pytest.fixture(autouse=True)
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{folder / 'data'}")


def list_keys(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert run(["keys", "list", "--json", *arguments]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_a_key_is_shown_once_and_listed_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", "ci", "--tenant", "acme", "--role", "read"]) == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("parley_")
    (shown,) = list_keys(capsys)
    assert {shown[name] for name in ("tenant", "name", "roles", "revoked")} == {"acme", "ci", "read", "-"}
    assert key.split("_", 2)[2] not in str(shown)
    assert list_keys(capsys, "--tenant", "other") == []


def test_a_key_is_revoked_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", "ci"]) == 0
    (shown,) = list_keys(capsys)
    assert run(["keys", "revoke", shown["id"]]) == 0
    assert list_keys(capsys)[0]["revoked"] != "-"
    assert run(["keys", "revoke", "nobody"]) == 1
    assert "no key 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["a\nb"], [" "], ["ci", "--tenant", "a/b"], ["ci", "--role", "service"], ["ci", "--role", "root"]],
)
def test_what_no_key_can_be_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "add", *arguments]) == 2
    assert list_keys(capsys) == []


@dataclass
class Keeper(ScriptedOrchestrator):
    """An orchestrator that keeps keys, and lists one on a page."""

    kept: list[ApiKey] = field(default_factory=list)

    def CreateKey(self, request: CreateKeyRequest, context: Any) -> CreateKeyResponse:  # noqa: N802
        made = ApiKey(id=f"{len(self.kept):012x}", name=request.name, roles=[*request.roles, 99])  # type: ignore[list-item]
        made.create_time.FromJsonString("2026-01-02T03:04:05Z")
        made.last_use_time.FromJsonString("2026-01-02T03:05:00Z")
        made.creator = "ann"
        if request.HasField("expire_time"):
            made.expire_time.CopyFrom(request.expire_time)
        made.budget.CopyFrom(request.budget)
        self.kept.append(made)
        return CreateKeyResponse(key=made, text=f"parley_{made.id}_secret")

    def ListKeys(self, request: ListKeysRequest, context: Any) -> ListKeysResponse:  # noqa: N802
        place = int(request.page_token or 0)
        more = str(place + 1) if place + 1 < len(self.kept) else ""
        return ListKeysResponse(keys=self.kept[place : place + 1], next_page_token=more)

    def RevokeKey(self, request: RevokeKeyRequest, context: Any) -> RevokeKeyResponse:  # noqa: N802
        found = next((each for each in self.kept if each.id == request.key_id), None)
        if found is None:
            refuse(context, not_found("key", request.key_id))
        assert found is not None
        found.revoke_time.FromJsonString("2026-01-02T03:04:06Z")
        return RevokeKeyResponse(key=found)


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    with scripted(keeper):
        yield keeper


def test_a_key_shows_who_created_it_and_expires_after_so_many_days(
    keeper: Keeper, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keys", "add", "ci", "--expires-in", "30"]) == 0
    assert run(["keys", "add", "ci"]) == 0
    first, second = list_keys(capsys)
    lasts = datetime.fromisoformat(first["expires"]) - datetime.fromisoformat(first["made"])
    assert timedelta(days=29) < lasts < timedelta(days=31)
    assert first["creator"].endswith(" at the store")
    assert (first["last_used"], second["expires"]) == ("-", "-")
    at = ["--server", keeper.address]
    assert run(["keys", "add", "ci", "--expires-in", "1", *at]) == 0
    (there,) = list_keys(capsys, *at)
    assert datetime.fromisoformat(there["expires"]) > datetime.now(UTC) + timedelta(hours=23)
    assert run(["keys", "add", "ci", "--expires-in", "0"]) == 2


def test_a_key_has_a_budget_of_its_own(keeper: Keeper, capsys: pytest.CaptureFixture[str]) -> None:
    for at in ([], ["--server", keeper.address]):
        assert run(["keys", "add", "ci", "--tokens-per-day", "1000", "--usd-per-day", "2.5", *at]) == 0
        (shown,) = list_keys(capsys, *at)
        assert (shown["tokens_per_day"], shown["usd_per_day"]) == ("1000", "2.50")
    assert run(["keys", "add", "ci", "--tokens-per-day", "0"]) == 2


def test_at_a_server_the_keys_are_those_of_ones_own_tenant(
    keeper: Keeper, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--server", keeper.address]
    assert run(["keys", "add", "ci", "--role", "read", *at]) == 0
    assert capsys.readouterr().out == "parley_000000000000_secret\n"
    assert run(["keys", "add", "more", *at]) == 0
    assert keeper.kept[0].roles[:1] == [ACCESS_ROLE_READ]
    assert run(["keys", "revoke", "000000000001", *at]) == 0
    assert "is revoked" in capsys.readouterr().err
    first, second = list_keys(capsys, *at)
    made = "2026-01-02T03:04:05.000000+00:00"
    assert first == {
        "id": "000000000000",
        "name": "ci",
        "roles": "99,read",
        "made": made,
        "creator": "ann",
        "expires": "-",
        "last_used": "2026-01-02T03:05:00.000000+00:00",
        "tokens_per_day": "-",
        "usd_per_day": "-",
        "revoked": "-",
    }
    assert (second["name"], second["revoked"]) == ("more", "2026-01-02T03:04:06.000000+00:00")
    assert run(["keys", "list", *at]) == 0
    header, row, _ = capsys.readouterr().out.split("\n", 2)
    assert re.split(r"  +", header.strip()) == [
        "ID",
        "NAME",
        "ROLES",
        "CREATED",
        "CREATOR",
        "EXPIRES",
        "LAST USED",
        "TOKENS PER DAY",
        "USD PER DAY",
        "REVOKED",
    ]
    shown = re.split(r"  +", row.strip())
    created, used = Timestamp(seconds=1_767_323_045), Timestamp(seconds=1_767_323_100)
    assert [shown[3], shown[6]] == [local_time_text(created), local_time_text(used)]
    assert not (folder / "data").exists(), "no store of this machine was opened"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["revoke", "00000000000f"], 1, "no key '00000000000f'"),
        (["add", "ci", "--tenant", "acme"], 2, "a server takes the tenant from PARLEY_TOKEN"),
        (["list", "--tenant", "acme"], 2, "a server takes the tenant from PARLEY_TOKEN"),
    ],
)
def test_what_a_server_cannot_do_is_refused(
    arguments: list[str], code: int, said: str, keeper: Keeper, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["keys", *arguments, "--server", keeper.address]) == code
    assert said in capsys.readouterr().err


def test_a_server_that_uses_no_keys_says_so(server: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["keys", "list", *server]) != 0
    assert "nobody is asked for a key here" in capsys.readouterr().err
