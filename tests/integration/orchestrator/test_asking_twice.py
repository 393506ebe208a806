"""One request id has one answer, wherever and whenever it is sent."""

import asyncio
from pathlib import Path

import pytest

from parley.orchestrator.engine.inbox import InboxEntry
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.journal import Journal
from parley.runtime.errors import ParleyError
from tests.support.interventions import intervention
from tests.support.orchestration import TENANT, Backstage, make_debate, orchestrating
from tests.support.scripted_gateway import ScriptedGateway


async def test_a_debate_that_was_accepted_is_found_again_while_the_gateway_is_away(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    gateway.hold("*")
    async with gateway.served() as server, orchestrating(tmp_path, server) as orchestrator:
        debate = await orchestrator.create(request_id="again")
        await server.drain()
        assert await orchestrator.create(request_id="again") == debate


async def test_an_intervention_at_two_replicas_at_once_has_one_answer_though_it_ends_the_debate(
    stage: Backstage,
) -> None:
    """The second replica looks for it before the first has put it in, and at the debate after it has ended."""
    stage.gateway.hold("*")
    looked, ended = asyncio.Event(), asyncio.Event()
    async with stage.replica("one") as one, stage.replica("two", exclusive=False) as two:
        debate = await one.create(make_debate())
        await stage.gateway.wait_for("*", 2)
        index, inbox = two.dependencies.index, two.dependencies.inbox
        get, look = index.get, inbox.get

        async def get_late(tenant: str, debate: str) -> DebateRecord | None:
            looked.set()
            await ended.wait()
            return await get(tenant, debate)

        index.get = get_late  # type: ignore[method-assign]
        second = asyncio.create_task(two.intervene(debate, "cancel", "w"))
        await asyncio.wait_for(looked.wait(), 30)
        first = await one.intervene(debate, "cancel", "w")
        await stage.comes_to(debate, "CANCELLED")
        ended.set()
        assert await second == first
        assert (await look(f"{TENANT}/{debate}/w")) is not None


async def test_what_the_log_holds_was_recorded_though_its_owner_died_before_it_said_so(
    stage: Backstage,
) -> None:
    """The record says that the debate has ended, and the inbox still waits: the log tells."""
    stage.gateway.hold("*")
    async with stage.replica("one") as one:
        debate = await one.create(make_debate())
        await stage.gateway.wait_for("*", 2)
    needs = stage.replica("two").dependencies
    # It changes nothing, and comes after what the dead owner was writing.
    await needs.index.reopen(TENANT, debate)
    journal = Journal(needs.log, needs.clock, TENANT, debate, await stage.events(debate))
    asked = intervention("cancel", "w")
    await journal.claim("gone", create_event("intervention/w", asked))
    sequence = (await stage.events(debate))[-2].sequence
    record = await stage.record(debate)
    index = needs.index
    await index.write(index.plan_claim(record, "gone", journal.epoch, record.updated))
    silent = stage.replica("three", exclusive=False, adopt=False)
    put = needs.inbox.put

    async def put_and_end(entry: InboxEntry) -> bool:
        answer = await put(entry)
        planned = index.plan_status(
            record, journal.epoch, status="CANCELLED", is_open=True, owner="gone", updated=record.updated
        )
        await index.write(planned)
        return answer

    silent.dependencies.inbox.put = put_and_end  # type: ignore[method-assign]
    assert await silent.intervene(debate, "cancel", "w") == sequence
    with pytest.raises(ParleyError) as refused:
        await silent.intervene(debate, "cancel", "another")
    assert refused.value.reason == "DEBATE_ENDED"
