"""The document of a decision over real gRPC, and why there is none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.client.debates import ParleyClient
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.events import Payload
from parley.runtime.errors import ParleyError
from parley.runtime.server import RunningServer
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Outcome
from parley.v1.event_pb2 import Claimed, Closed, Concluded
from parley.v1.moderated_pb2 import ModeratedOutcome
from tests.support.debate_logs import leave_log
from tests.support.orchestration import backstage, orchestrating
from tests.unit.orchestrator.made_logs import DEBATE, log, make_created

ABSENT = "deb-20260101-000000-aaaaaaaa"
DECIDED = Concluded(outcome=Outcome(description="d", moderated=ModeratedOutcome(topic="A cache?", rounds=1)))


@asynccontextmanager
async def client_of(
    folder: Path, gateway: RunningServer, *payloads: Payload, debate_format: str = "moderated@1"
) -> AsyncIterator[ParleyClient]:
    """A client of an orchestrator that holds this debate, and leaves it as it is."""
    creation = create_event("created", make_created(format=debate_format))
    async with backstage(folder) as stage:
        await leave_log(stage, log(creation, Claimed(owner="a"), *payloads))
    async with (
        orchestrating(folder, gateway, adopt=False) as orchestrator,
        ParleyClient(orchestrator.server.address) as client,
    ):
        yield client


async def refusal(client: ParleyClient, debate_id: str) -> ParleyError:
    with pytest.raises(ParleyError) as refused:
        await client.get_decision(debate_id)
    return refused.value


async def test_a_completed_moderated_debate_has_a_document(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with client_of(tmp_path, gateway_server, DECIDED, Closed()) as client:
        assert (await client.get(DEBATE)).status == DEBATE_STATUS_COMPLETED
        decision = await client.get_decision(DEBATE)
    assert decision.file_name == "2027-01-02-a-cache.md"
    assert decision.markdown.startswith("# Decision: Which store?\n\n- **Decision:** ")
    assert "\n- **Date:** 2027-01-02\n" in decision.markdown
    assert "\n\n## Question\n\n> Which store?\n\n**Constraints:**\n\n" in decision.markdown


@pytest.mark.parametrize(
    ("debate_format", "payloads", "why"),
    [
        ("moderated@1", (), "is running, and has come to no decision yet; ask again when it is completed"),
        ("moderated@1", (Concluded(),), "was cancelled, and came to no decision; read its report instead"),
        (
            "panel@1",
            (Concluded(outcome=Outcome(description="d")),),
            "is of the format panel, and only a moderated one comes to a decision; read its report instead",
        ),
    ],
)
async def test_a_debate_without_a_decision_says_why_and_what_to_do(
    tmp_path: Path, gateway_server: RunningServer, debate_format: str, payloads: tuple[Payload, ...], why: str
) -> None:
    async with client_of(tmp_path, gateway_server, *payloads, debate_format=debate_format) as client:
        refused = await refusal(client, DEBATE)
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_DECISION")
    assert refused.message == f"debate {DEBATE} {why}"


async def test_a_debate_that_is_not_there_and_an_id_that_is_none_are_refused(
    tmp_path: Path, gateway_server: RunningServer
) -> None:
    async with client_of(tmp_path, gateway_server) as client:
        assert (await refusal(client, ABSENT)).code == grpc.StatusCode.NOT_FOUND
        bad = await refusal(client, "../x")
    assert (bad.code, [each.field for each in bad.violations]) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["debate_id"],
    )
