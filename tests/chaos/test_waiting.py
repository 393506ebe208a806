"""Moderated debates that wait at a checkpoint, whoever is killed around it: they wait, go on, and heed guidance once."""

import asyncio
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from parley.client import DebateSpec
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.index import DebateIndex
from parley.storage.opening import open_store
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Debate, Participant
from parley.v1.event_pb2 import Event
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.chaos.crashing import check_all, kill_each, name_both_points
from tests.chaos.driver import Clients
from tests.chaos.harness import System
from tests.support.model_server import read_ledger
from tests.support.moderator_rules import moderator_rules
from tests.support.terminal import Terminal

_GUIDANCE: Final = "Think of cost."
_NOTED: Final = "update.debates.address+alive+cost_micros+due+news+open+owner+status+updated"
_CLAIMED: Final = "update.debates.address+alive+due+epoch+heartbeat+open+opening+owner+updated"
_POINTS: Final = [
    "append.checkpoint_opened:1",
    f"{_NOTED}:1",  # that it waits
    "update.debates.due+open:1",
    f"{_CLAIMED}:2",
    "append.checkpoint_closed:1",
]
"""Between one of these and the next there is one write, or none."""
_SECONDS: Final = 60.0


@pytest.fixture(autouse=True)
def moderator(system: System) -> Iterator[None]:
    """A moderator who asks nothing and always goes on."""
    with system.rules(*moderator_rules(2)):
        yield


def _question(mark: str) -> str:
    return f"Redis or PostgreSQL for the sessions of {mark}"


async def _create_debate(clients: Clients, name: str, at: str) -> str:
    mark = f"case-{re.sub('[^a-z0-9]', '-', name)}-{uuid.uuid4().hex[:6]}."
    settings: dict[str, Any] = {"perspectives": 2, "max_rounds": 2, "checkpoints": True}
    debate = DebateSpec(
        question=_question(mark),
        agents=[Participant(agent=Agent(id=name, role="architect")) for name in ("ada", "bo")],
        judge=Participant(agent=Agent(id="judge", role="judge")),
        moderated=ModeratedSettings(**settings),
    )
    return await clients.create(debate, mark, at=at)


async def _wait_until_left(system: System, debate: str) -> DebateRecord:
    """Wait until a debate waits for a person without an owner."""
    async with asyncio.timeout(_SECONDS), open_store(system.store_url, "orchestrator") as store:
        index = DebateIndex(store.documents)
        while True:
            record = await index.get("default", debate)
            if record is not None and record.due is not None:
                assert (record.owner, record.open) == (None, False)
                return record
            await asyncio.sleep(0.05)


async def _wait_until_asked(clients: Clients, debate: str, before: str = "") -> Debate:
    """Wait until a person is asked something else than before, or the debate has ended."""
    async with asyncio.timeout(_SECONDS):
        while True:
            found = await clients.client.get(debate)
            if found.waiting.checkpoint not in ("", before) or found.status == DEBATE_STATUS_COMPLETED:
                return found
            await asyncio.sleep(0.05)


async def _finish(clients: Clients, debate: str, key: str) -> None:
    """Go on from each checkpoint after the one with a key, and approve."""
    while (found := await _wait_until_asked(clients, debate, key)).status != DEBATE_STATUS_COMPLETED:
        key = found.waiting.checkpoint
        is_approval = found.waiting.HasField("approval")
        await clients.intervene(debate, "approve" if is_approval else "continue_debate")


async def _wait_until_argued(clients: Clients, debate: str) -> None:
    """Wait until both debaters have argued in the second round."""
    argued = 0
    async with asyncio.timeout(_SECONDS):
        async for event in clients.client.watch(debate):
            if isinstance(event, Event) and event.HasField("step_succeeded"):
                argued += event.key.startswith("round/2/argue/")
                if argued == 2:
                    return


async def _check_heeded_once(
    system: System, clients: Clients, debate: str, guidance: str = _GUIDANCE
) -> None:
    """Check that guidance is recorded once, closed one checkpoint, and is told once in each prompt of the next round."""
    events = [event async for event in clients.client.watch(debate) if isinstance(event, Event)]
    guided = [each for each in events if each.intervened.intervention.guide.text == guidance]
    closed = [each for each in events if each.checkpoint_closed.intervention.guide.text == guidance]
    assert (len(guided), len(closed)) == (1, 1)
    question = events[0].debate_created.spec.question
    prompts = [call.prompt for call in read_ledger(system.ledger) if question in call.prompt]
    told = [prompt.count(guidance) for prompt in prompts if "Argue your perspective's case" in prompt]
    assert sorted(told) == [0, 0, 1, 1], "two debaters argue in two rounds, the second of which is guided"


@pytest.mark.parametrize("point", _POINTS)
async def test_guidance_is_heeded_once_when_the_owner_is_killed_around_the_checkpoint(
    system: System, clients: Clients, point: str
) -> None:
    made: list[str] = []

    async def debate(owner: str, crash: str) -> None:
        one = await _create_debate(clients, f"guided-{crash}", owner)
        made.append(one)
        watching = asyncio.create_task(clients.watch(one))
        await _wait_until_left(system, one)
        assert (await clients.intervene(one, "guide", at=owner)).sequence
        await _wait_until_argued(clients, one)
        assert (await clients.intervene(one, "cancel")).sequence
        await watching

    await kill_each(system, name_both_points(point), debate)
    for one in made:
        await _check_heeded_once(system, clients, one)
    await check_all(clients)


async def test_it_waits_when_every_orchestrator_is_killed_and_whoever_starts_next_goes_on(
    system: System, clients: Clients
) -> None:
    system.make_ready()
    debate = await _create_debate(clients, "all-killed", "orchestrator-1")
    before = await _wait_until_left(system, debate)
    for name in system.options.orchestrators:
        system.kill(name)
    system.start("orchestrator-2")
    key = (await _wait_until_asked(clients, debate)).waiting.checkpoint
    assert (await _wait_until_left(system, debate)).epoch == before.epoch, "nobody claims what only waits"
    assert (await clients.intervene(debate, "guide")).sequence
    await _finish(clients, debate, key)
    await _check_heeded_once(system, clients, debate)
    await check_all(clients)


@pytest.mark.parametrize("with_orchestrators", [True, False], ids=["both", "the command"])
async def test_a_debate_waits_and_goes_on_when_the_command_is_killed_at_its_checkpoint(
    system: System, clients: Clients, tmp_path: Path, *, with_orchestrators: bool
) -> None:
    system.make_ready()
    mark = f"case-command-{uuid.uuid4().hex[:6]}."
    arguments = ["debate", _question(mark), "--format", "moderated", "--agents", "architect,security"]
    server = ["--server", system.target("orchestrator-1").removeprefix("ipv4:")]
    options = ["--perspectives", "2", "--max-rounds", "2", *server]
    guidance = "Mind the otters."
    with Terminal([*arguments, *options], tmp_path, {"TERM": "xterm-256color"}, columns=200) as terminal:
        await asyncio.to_thread(terminal.wait_until_written, "[E]nd early\n> ")
        (debate,) = {each.id async for each in clients.client.list() if mark in each.question}
        terminal.process.kill()
        if with_orchestrators:
            for name in system.options.orchestrators:
                system.kill(name)
            system.make_ready()
    await _wait_until_left(system, debate)
    resume = ["debate", "--resume", debate, *server]
    with Terminal(resume, tmp_path, {"TERM": "xterm-256color"}, columns=200) as terminal:
        await asyncio.to_thread(terminal.wait_until_written, "[E]nd early\n> ")
        terminal.type(b"g\n")
        await asyncio.to_thread(terminal.wait_until_written, "Your guidance:\n> ")
        terminal.type(f"{guidance}\n".encode())
        await asyncio.to_thread(terminal.wait_until_written, f"guide: {guidance}")
        terminal.process.kill()
    await _wait_until_argued(clients, debate)
    assert (await clients.intervene(debate, "cancel")).sequence
    await _check_heeded_once(system, clients, debate, guidance)
