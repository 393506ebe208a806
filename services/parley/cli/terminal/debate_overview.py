"""The state of a debate on one screen."""

from collections.abc import Iterable, Iterator
from typing import Final

from parley.cli.command_name import suggest
from parley.cli.terminal.checkpoints import clarification_lines
from parley.cli.terminal.event_texts import rounds_end_text, vote_text
from parley.cli.terminal.words import (
    ACTIVE,
    ENDED,
    RESUMABLE,
    SHORT_WIDTH,
    cost_text,
    debating_agents,
    enum_text,
    failure_lines,
    local_time_text,
    to_line,
)
from parley.client import Debate, DebateStatus
from parley.runtime.work_words import ending_text
from parley.v1.debate_pb2 import FailedContribution, Feedback, ImportedDebate

_TEXT_WIDTH: Final = 76
_INDENT: Final = " " * len("Judge      ")


def overview_lines(debate: Debate, hint: str, *, alone: bool, server: str | None = None) -> Iterable[str]:
    """Yield the lines, without line ends and without the answer.

    `hint` is the command that answers the open checkpoint, empty if there is none; `alone` says that no other process
    can run the debate.
    """
    yield from _head_lines(debate, alone=alone)
    if debate.HasField("imported"):
        yield f"Imported   {import_text(debate.imported)}"
    yield f"Created    {local_time_text(debate.create_time)}"
    yield f"Updated    {local_time_text(debate.update_time)}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"Calls      {debate.calls}, {usage.input_tokens + usage.output_tokens:,} tokens{cost}"
    yield from clarification_lines(debate, _TEXT_WIDTH)
    if debate.evaluation_ids:
        yield f"Evaluated  {', '.join(debate.evaluation_ids)}"
    if debate.HasField("feedback"):
        yield f"Feedback   {feedback_text(debate.feedback)}"
    yield from _problem_lines(debate, hint, alone=alone, server=server)


def import_text(imported: ImportedDebate) -> str:
    """Return how a debate of another system came here."""
    by = f" by {imported.imported_by}" if imported.imported_by else ""
    return (
        f"{local_time_text(imported.import_time)}{by}, to be read only; signed by the key {imported.key_id}"
    )


def _head_lines(debate: Debate, *, alone: bool) -> Iterable[str]:
    status = status_text(debate.status, interrupted=alone)
    shows_phase = bool(debate.phase) and debate.status not in ENDED
    yield f"Debate     {debate.id}"
    yield f"Status     {status}{f' ({debate.phase})' if shows_phase else ''}"
    yield f"Question   {to_line(debate.spec.question, SHORT_WIDTH)}"
    if debate.spec.labels:
        labels = (f"{name}={value}" for name, value in sorted(debate.spec.labels.items()))
        yield f"Labels     {', '.join(labels)}"
    if debate.spec.environment:
        facts = (f"{name}: {text}" for name, text in sorted(debate.spec.environment.items()))
        yield f"Facts      {to_line('; '.join(facts), SHORT_WIDTH)}"
    yield f"Agents     {', '.join(each.id for each in debating_agents(debate))}"
    if debate.spec.HasField("evaluation"):
        yield f"Evaluates  {debate.spec.evaluation.debate_id}"
    else:
        yield f"Judge      {debate.spec.judge.agent.id}"
        yield from (f"{_INDENT}{each}" for each in debate.judge_reason.split("; ") if each)
        yield f"Rounds     {_rounds_text(debate)}"
    if debate.demonstration:
        yield "Note       a demonstration by a very small model; neither remembered nor rated"
    if debate.HasField("first_drafts"):
        yield f"Vote       {vote_text(debate.first_drafts)}"


def _rounds_text(debate: Debate) -> str:
    held = (
        f"{debate.current_round} of {debate.max_rounds}" if debate.max_rounds else str(debate.current_round)
    )
    end = rounds_end_text(debate)
    return f"{held}; {end}" if end else held


def _problem_lines(debate: Debate, hint: str, *, alone: bool, server: str | None) -> Iterable[str]:
    if debate.HasField("waiting"):
        waiting = debate.waiting
        whom = "a person" if waiting.checkpoint else f"{waiting.agent_id} ({waiting.reason})"
        yield f"Waits      for {whom} until {local_time_text(waiting.until)}: {waiting.message}"
        if hint:
            yield f"Answer     {hint}"
    if debate.ended_by:
        yield f"Limit      {ending_text(debate.ended_by)}"
    for warning in dict.fromkeys(debate.warnings):
        yield f"Warning    {warning}"
    failed = [f"Failed     {line}" for line in failure_lines(_list_untold(debate))]
    yield from failed
    why = f"{debate.failure.reason}: {debate.failure.message}"
    if debate.HasField("failure") and not any(line.endswith(f": {why}") for line in failed):
        yield f"Why        {why}"
    if debate.status in RESUMABLE or (alone and debate.status in ACTIVE):
        yield f"Go on      {suggest(f'debate --resume {debate.id}', server)}"


def _list_untold(debate: Debate) -> Iterator[FailedContribution]:
    """Yield the failures of agents, and those of services that no warning tells."""
    for each in debate.failures:
        is_told = each.message and any(each.message in warning for warning in debate.warnings)
        if each.work.agent_id or not is_told:
            yield each


def feedback_text(feedback: Feedback) -> str:
    """Return `up: it helped (counted for ada, bo)`."""
    word = "up" if feedback.value > 0 else "down"
    line = f"{word}: {to_line(feedback.message, SHORT_WIDTH)}" if feedback.message else word
    if not feedback.agent_ids:
        return f"{line} (counted for no rating: demonstrations and evaluations are not rated)"
    agents = ", ".join(feedback.agent_ids)
    return (
        f"{line} (counted for {agents})" if feedback.rated else f"{line} (still to be counted for {agents})"
    )


def status_text(status: DebateStatus.ValueType, *, interrupted: bool) -> str:
    """Return the status in a word; `interrupted` says that no system runs debates that should run."""
    if interrupted and status in ACTIVE:
        return "interrupted"
    return enum_text(DebateStatus.DESCRIPTOR, status)
