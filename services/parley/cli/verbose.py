"""What was said and what it took, round by round, after a debate."""

from collections.abc import Iterable, Iterator

from parley.cli.state import enum_word
from parley.client import Debate
from parley.v1.agent_pb2 import Agent
from parley.v1.orchestrator_pb2 import (
    CONTRIBUTION_KIND_SYNTHESIS,
    Contribution,
    ContributionKind,
    FailedContribution,
)

__all__ = ["account", "cost_text"]

_WIDTH = 100


def account(debate: Debate) -> Iterator[str]:
    """The lines, without line ends."""
    yield "Prompts"
    agents = [each.agent for each in debate.spec.agents]
    for agent in (*agents, debate.spec.judge.agent):
        yield f"  {agent.id} ({agent.role}): {_source(agent)}"
    for number in sorted({each.round for each in debate.contributions if each.round}):
        yield f"Round {number}"
        yield from _lines(debate, number)
    if any(not each.round for each in debate.contributions) or any(
        not each.round for each in debate.failures
    ):
        yield "Synthesis"
        yield from _lines(debate, 0)
    yield "Totals"
    rounds = "1 round" if debate.current_round == 1 else f"{debate.current_round} rounds"
    yield f"  {rounds}, {debate.calls} calls, {_duration(debate)}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"  {usage.input_tokens:,} tokens read, {usage.output_tokens:,} written{cost}"


def cost_text(micros: int) -> str:
    """Millionths of a dollar as dollars."""
    return f"${micros / 1e6:.4f}"


def _source(agent: Agent) -> str:
    return agent.system_prompt.source if agent.HasField("system_prompt") else "built-in"


def _lines(debate: Debate, number: int) -> Iterator[str]:
    for each in debate.contributions:
        if each.round == number:
            # The judge answers in JSON; what it says is in the solution.
            is_answer = each.kind == CONTRIBUTION_KIND_SYNTHESIS and debate.HasField("solution")
            yield f"  {_what(each)}: {_first_line(debate.solution.description if is_answer else each.text)}"
            tokens = each.usage.input_tokens + each.usage.output_tokens
            seconds = each.latency.ToNanoseconds() / 1e9
            summarized = f", {each.summarized_characters:,} → {len(each.text):,} characters"
            yield f"    {seconds:.1f} s, {tokens:,} tokens{summarized if each.summarized_characters else ''}"
    for failed in debate.failures:
        if failed.round == number:
            yield f"  {_what(failed)}: failed: {failed.reason}: {failed.message}"


def _what(each: Contribution | FailedContribution) -> str:
    kind = enum_word(ContributionKind.Name(each.kind), "ContributionKind")
    target = f" of {each.target_agent_id}" if isinstance(each, Contribution) and each.target_agent_id else ""
    return f"{each.agent_id}, {kind}{target}"


def _first_line(text: str) -> str:
    line = next(_nonblank(text.splitlines()), "")
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _nonblank(lines: Iterable[str]) -> Iterator[str]:
    return (line.strip() for line in lines if line.strip())


def _duration(debate: Debate) -> str:
    seconds = (debate.updated_at.ToNanoseconds() - debate.created_at.ToNanoseconds()) / 1e9
    return f"{seconds:.1f} s"
