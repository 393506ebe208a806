"""Logs of debates made by hand, sealed as the journal seals them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from parley.orchestrator.envelope import GENESIS, Draft, Envelope, seal
from parley.orchestrator.events import DebateCreated, Payload, Reply, StepFailed, StepSucceeded, Usage, Work
from parley.orchestrator.spec import AgentSpec, DebateSpec

DEBATE = "deb-20270102-030405-abcdefgh"
START = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
ADA = AgentSpec("ada", "Ada", "architect")
BO = AgentSpec("bo", "Bo", "security")
JUDGE = AgentSpec("judge", "The judge", "judge")
SPEC = DebateSpec("Which store?", "panel@1", (ADA, BO), JUDGE, rounds=1)
CREATED = Draft("created", DebateCreated("request-1", SPEC))


def log(*drafts: Draft | Payload) -> list[Envelope]:
    """Return the events of a log, one second apart; a bare payload gets a key of its own."""
    return list(_sealed(drafts))


def succeeded(work: Work, text: str, *, attempt: int = 1, usage: Usage | None = None) -> Draft:
    """Return an agent's success at a step."""
    reply = Reply(
        text, usage=usage or Usage(10, 5, 100, 1), latency_ms=1500, route="openai-small", model="small"
    )
    return Draft(key_of(work), StepSucceeded(work, "digest", reply), attempt)


def failed(work: Work, message: str = "no answer", *, attempt: int = 1) -> Draft:
    """Return an agent's failure at a step."""
    failure = StepFailed(work, "digest", "CALL_TIMEOUT", message, Usage(3, 0, 7, 2))
    return Draft(key_of(work), failure, attempt)


def key_of(work: Work) -> str:
    """Return a key for a step, one a work."""
    return "/".join(each for each in (str(work.round), work.activity, work.agent, work.target) if each)


def _sealed(drafts: Iterable[Draft | Payload]) -> Iterable[Envelope]:
    before = GENESIS
    for sequence, each in enumerate(drafts, start=1):
        draft = each if isinstance(each, Draft) else Draft(f"key/{sequence}", each)
        envelope, _ = seal(
            draft,
            tenant="default",
            debate=DEBATE,
            sequence=sequence,
            epoch=1,
            time=START + timedelta(seconds=sequence - 1),
            before=before,
        )
        before = envelope.hash
        yield envelope
