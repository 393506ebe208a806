"""Progress of a call: never silent for long, never a number twice."""

import asyncio

from parley.client import Event
from parley.mcp.following import Progress, describe_event
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import LimitReached, PhaseStarted, RoundStarted, StepFailed, StepStarted, Warned


async def test_while_nothing_happens_the_last_text_is_sent_again_with_a_larger_number() -> None:
    sent: list[tuple[float, str]] = []
    enough = asyncio.Event()

    async def report(number: float, text: str) -> None:
        sent.append((number, text))
        if len(sent) == 4:
            enough.set()

    progress = Progress(report, silent_seconds=0.01)
    await progress.send("round 1/2")
    async with asyncio.timeout(10), progress.keep_alive():
        await enough.wait()
    assert [number for number, _ in sent] == list(range(1, len(sent) + 1))
    assert {text for _, text in sent} == {"round 1/2"}
    count = len(sent)
    await asyncio.sleep(0)
    assert len(sent) == count, "it ends with its block"


def test_an_event_is_a_line_for_people() -> None:
    work = Work(activity="critique", doing="criticizes", agent_id="ada", target_agent_id="bo")
    assert describe_event(Event(round_started=RoundStarted(number=1, total=3))) == "round 1/3"
    started = PhaseStarted(activity="critique", round=1, expected=2)
    assert describe_event(Event(phase_started=started)) == "round 1 critique: 2 to come"
    assert describe_event(Event(step_started=StepStarted(work=work))) == "ada criticizes bo"
    failed = StepFailed(work=work, message="no\nanswer")
    assert describe_event(Event(step_failed=failed)) == "ada criticizes bo: failed: no answer"
    assert describe_event(Event(warned=Warned(message="slow"))) == "warning: slow"
    late = LimitReached(limit="round_timeout", round=2, used=90)
    assert (
        describe_event(Event(limit_reached=late))
        == "round 2: its time limit is over after 90 s; it goes on without late agents"
    )
    assert describe_event(Event()) == ""
