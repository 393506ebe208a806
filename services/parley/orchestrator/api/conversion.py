"""What the edge answers, as the contract's messages. Nothing is decided here."""

from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.api.answer import answer_markdown, process_markdown
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.model.labels import labels_of
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.source_uses import list_source_uses
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import Debate

_STATUS: Final = "DEBATE_STATUS_"


def status_to_proto(status: str) -> debate_pb2.DebateStatus.ValueType:
    """Return a state of the index as the contract names it."""
    return debate_pb2.DebateStatus.Value(_STATUS + status)


def status_from_proto(status: debate_pb2.DebateStatus.ValueType) -> str:
    """Return a state as the index names it. Raises ValueError for a number that is no state."""
    if status == debate_pb2.DEBATE_STATUS_UNSPECIFIED:
        raise ValueError("the status is not set")
    return debate_pb2.DebateStatus.Name(status).removeprefix(_STATUS)


def status_word(debate: Debate) -> str:
    """Return the status of a debate as people read it, such as `completed`."""
    return status_from_proto(debate.status).lower()


def with_answer(debate: Debate, debate_format: Format | None, *, alone: bool = False) -> Debate:
    """Return a copy of a debate as people read it.

    It has who cited its sources, names in its warnings, and its answer as its format, if it is known here, shows it; see `answer_markdown`.
    """
    whole = Debate()
    whole.CopyFrom(debate)
    _name_agents(whole)
    whole.source_uses.extend(list_source_uses(debate))
    if debate.HasField("outcome"):
        whole.answer = answer_markdown(debate, debate_format, alone=alone)
        whole.process = process_markdown(debate, debate_format)
    return whole


def without_texts(debate: Debate) -> Debate:
    """Return a copy of a debate as people read it, without its large parts; of its documents, the paths alone."""
    bare = Debate()
    bare.CopyFrom(debate)
    for name in ("contributions", "failures", "outcome", "sources"):
        bare.ClearField(name)
    for each in bare.spec.context:
        each.ClearField("text")
    _name_agents(bare)
    return bare


def _name_agents(debate: Debate) -> None:
    """Put names in place of letters into the warnings of a debate."""
    debate.warnings[:] = list(map(names_of(debate).put_in, debate.warnings))


def summary_to_proto(record: DebateRecord) -> orchestrator_pb2.DebateSummary:
    """Return a debate as a list shows it."""
    created, updated = _stamp(record.created.removesuffix(f"/{record.debate}")), _stamp(record.updated)
    return orchestrator_pb2.DebateSummary(
        id=record.debate,
        status=status_to_proto(record.status),
        question=record.question,
        format=record.format,
        labels=labels_of(record.labels),
        create_time=created,
        update_time=updated,
        cost_micros=record.cost_micros,
        imported=bool(record.imported),
    )


def _stamp(time: str) -> Timestamp:
    stamp = Timestamp()
    stamp.FromJsonString(time.replace("+00:00", "Z"))
    return stamp
