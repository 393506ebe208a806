"""The evaluation's settings: what they are by default, and what is refused."""

from typing import Final

from google.protobuf.message import Message

from parley.orchestrator.engine.format import Settings
from parley.runtime.contract_settings import with_defaults
from parley.runtime.validation import AGENT_ID, DEBATE_ID, Violations
from parley.v1.evaluation_pb2 import EvaluationSettings

__all__ = ["SETTINGS"]


def _check_rules(violations: Violations, settings: Message, _agents: int) -> None:
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
    for agent in sorted(settings.timeouts):
        field = f"spec.evaluation.timeouts.{agent[:80]}"
        violations.check(that=bool(AGENT_ID.fullmatch(agent)), field=field, otherwise="is not an agent's id")


SETTINGS: Final = Settings(
    name="evaluation", defaults=with_defaults(EvaluationSettings()), check_rules=_check_rules
)
