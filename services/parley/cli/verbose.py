"""What was said and what it took, round by round, after a debate."""

from collections import Counter
from collections.abc import Iterable, Iterator

from parley.cli.state import enum_word
from parley.cli.words import failure_lines, rounds_words
from parley.client import Debate
from parley.v1.agent_pb2 import Agent, ToolCall
from parley.v1.orchestrator_pb2 import (
    CONTRIBUTION_KIND_SYNTHESIS,
    Contribution,
    ContributionKind,
    FirstDraftVote,
)

__all__ = ["account", "cost_text", "vote_text"]

_WIDTH = 100


def account(debate: Debate, early: str = "") -> Iterator[str]:
    """The lines, without line ends; `early` is why the rounds ended early, if they did."""
    yield "Prompts"
    agents = [each.agent for each in debate.spec.agents]
    for agent in (*agents, debate.spec.judge.agent):
        yield f"  {agent.id} ({agent.role}): {_source(agent)}"
    if debate.recalled_debate_ids:
        yield "Past debates shown"
        yield from (f"  {each}" for each in debate.recalled_debate_ids)
    for number in sorted({each.round for each in debate.contributions if each.round}):
        yield f"Round {number}"
        yield from _lines(debate, number)
        if number == 1 and debate.HasField("first_draft_vote"):
            yield from _vote(debate.first_draft_vote)
    if any(not each.round for each in debate.contributions) or any(
        not each.round for each in debate.failures
    ):
        yield "Synthesis"
        yield from _lines(debate, 0)
    yield "Totals"
    yield f"  {rounds_words(debate.current_round)}, {debate.calls} calls, {_duration(debate)}"
    if early:
        yield f"  {early}"
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
            if each.tool_calls:
                yield f"    looked up: {_looked_up(each.tool_calls)}"
    for line in failure_lines(each for each in debate.failures if each.round == number):
        yield f"  failed: {line}"


def _looked_up(calls: Iterable[ToolCall]) -> str:
    """The tools by name, with how often each was used, in the order of their first use."""
    told = Counter(f"{call.name}{' (failed)' if call.failed else ''}" for call in calls)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in told.items())  # noqa: RUF001


def vote_text(vote: FirstDraftVote) -> str:
    """`2 of 3 agree` or `no majority`: how the first drafts group."""
    drafts = sum(len(group.agent_ids) for group in vote.groups)
    return f"{len(vote.groups[0].agent_ids)} of {drafts} agree" if vote.majority else "no majority"


def _vote(vote: FirstDraftVote) -> Iterator[str]:
    yield f"  vote over the first drafts: {vote_text(vote)}"
    for group in vote.groups:
        yield f"    {', '.join(group.agent_ids)}: {_first_line(group.position) or 'no position stated'}"


def _what(each: Contribution) -> str:
    kind = enum_word(ContributionKind.Name(each.kind), "ContributionKind")
    target = f" of {each.target_agent_id}" if each.target_agent_id else ""
    return f"{each.agent_id}, {kind}{target}"


def _first_line(text: str) -> str:
    line = next(_nonblank(text.splitlines()), "")
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _nonblank(lines: Iterable[str]) -> Iterator[str]:
    return (line.strip() for line in lines if line.strip())


def _duration(debate: Debate) -> str:
    seconds = (debate.updated_at.ToNanoseconds() - debate.created_at.ToNanoseconds()) / 1e9
    return f"{seconds:.1f} s"
