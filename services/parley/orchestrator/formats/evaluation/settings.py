"""The evaluation's settings: what they are by default, and what is refused."""

from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.runtime.validation import AGENT_ID, DEBATE_ID, Violations
from parley.v1.evaluation_pb2 import EvaluationSettings

__all__ = ["SETTINGS"]

_MAX_SECONDS: Final = 3600


def _check(violations: Violations, settings: Message, _agents: int) -> None:
    assert isinstance(settings, EvaluationSettings)
    violations.check(
        that=bool(DEBATE_ID.fullmatch(settings.debate_id)),
        field="spec.evaluation.debate_id",
        otherwise=f"{settings.debate_id[:80]!r} is not a debate id",
    )
    violations.check(
        that=not settings.HasField("evaluated"),
        field="spec.evaluation.evaluated",
        otherwise="must not be set: it is read from the debate",
    )
    for agent, timeout in sorted(settings.timeouts.items()):
        field = f"spec.evaluation.timeouts.{agent[:80]}"
        violations.check(that=bool(AGENT_ID.fullmatch(agent)), field=field, otherwise="is not an agent's id")
        violations.check(
            that=1 <= timeout.ToMilliseconds() / 1000 <= _MAX_SECONDS,
            field=field,
            otherwise="must be 1 second to 1 hour",
        )


SETTINGS = Settings(name="evaluation", defaults=EvaluationSettings(include_proposals=False), check=_check)
