"""Interventions that are left in the inbox: they are taken up or ended, and keep no others waiting."""

import asyncio

import pytest

from parley.orchestrator.engine.inbox import INBOX, InboxEntry
from parley.orchestrator.log.debate_record import record_key
from parley.storage.ports import Fields
from parley.v1.debate_pb2 import Intervention
from parley.v1.event_pb2 import Intervened
from tests.support.interventions import intervention
from tests.support.orchestration import TENANT, Backstage, Replica, make_debate, until


async def leave_interventions(replica: Replica, debate: str, count: int) -> None:
    """Leave interventions in the inbox, as callers do that are gone right after."""
    key = record_key(TENANT, debate)
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            entry = InboxEntry(
                key, f"2020/{number:06}", intervention("guide", f"left-{number}", text="be brief")
            )
            tasks.create_task(replica.dependencies.inbox.put(entry))


async def test_an_intervention_whose_caller_is_gone_ends_with_its_debate(stage: Backstage) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1))
        await stage.comes_to(debate, "COMPLETED")
        await leave_interventions(replica, debate, 1)
        entry = await until(lambda: _find_ended(replica, debate, "left-0"), "it is ended")
    assert entry.sequence == 0
    assert "intervened" not in await stage.kinds(debate)


async def _find_ended(replica: Replica, debate: str, request_id: str) -> InboxEntry | None:
    entry = await replica.dependencies.inbox.get(f"{record_key(TENANT, debate)}/{request_id}")
    return entry if entry is not None and entry.state == "ended" else None


async def test_an_intervention_on_a_debate_that_rests_is_taken_up_though_its_caller_went_before_asking_for_an_owner(
    stage: Backstage,
) -> None:
    stage.gateway.hold("round/1/propose/*")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1))
        await replica.intervene(debate, "pause", stop_calls=True)
        await stage.comes_to(debate, "PAUSED")
        await leave_interventions(replica, debate, 1)
        await stage.has(debate, "intervened", 2)


async def test_interventions_that_nobody_takes_up_do_not_keep_others_waiting(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.engine.inbox._PAGE_SIZE", 10)
    stage.gateway.hold("round/1/propose/*")
    async with stage.replica() as replica:
        ended, running = [await replica.create(make_debate(2, 1)) for _ in range(2)]
        await replica.intervene(ended, "cancel")
        await stage.comes_to(ended, "CANCELLED")
        await leave_interventions(replica, ended, 25)
        await replica.intervene(running, "cancel")
        await stage.comes_to(running, "CANCELLED")
        await until(lambda: _find_ended(replica, ended, "left-24"), "those of the ended one are ended")


NEWER = Intervention.FromString(b"\xfa\x06\x00")  # an act that only a later version of the contract knows


async def test_what_only_a_newer_version_knows_is_left_to_it(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/propose/ada")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1))
        await hold.reached.wait()
        newer = InboxEntry(
            record_key(TENANT, debate), "2020/1", Intervened(request_id="newer", intervention=NEWER)
        )
        await replica.dependencies.inbox.put(newer)
        await replica.intervene(debate, "guide", text="be brief")  # it was looked at the inbox since
        kept = await replica.dependencies.inbox.get(newer.key)
        hold.release()
        await stage.comes_to(debate, "COMPLETED")
    assert kept is not None
    assert (kept.state, kept.intervened) == ("waiting", newer.intervened)
    assert (await stage.kinds(debate)).count("intervened") == 1


async def test_an_intervention_that_cannot_be_read_keeps_no_other_waiting(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1))
        await hold.reached.wait()
        key = record_key(TENANT, debate)
        odd: Fields = {"debate": key, "made": "2000", "state": "waiting", "intervened": "?"}
        await stage.store.documents.insert(INBOX, f"{key}/odd", odd)
        assert await replica.intervene(debate, "guide", text="be brief") > 0
        hold.release()
        await stage.comes_to(debate, "COMPLETED")
