"""What was said and what it took, round by round, after a debate."""

from collections import Counter
from collections.abc import Iterable, Iterator

from parley.cli.terminal.checkpoints import clarification_lines
from parley.cli.terminal.rounds import rounds_end_text, vote_lines
from parley.cli.terminal.shorten import first_line
from parley.cli.terminal.words import (
    cost_text,
    debating_agents,
    duration_text,
    failure_lines,
    rounds_text,
    run_seconds,
)
from parley.client import Debate
from parley.v1.agent_pb2 import Agent, ToolCall
from parley.v1.debate_pb2 import Contribution, Work

__all__ = ["account_lines"]

_WIDTH = 100


def account_lines(debate: Debate) -> Iterator[str]:
    """Yield the lines, without line ends."""
    yield "Prompts"
    for agent in (*debating_agents(debate), debate.spec.judge.agent):
        role = f"{agent.role}, from {agent.own_role.source}" if agent.HasField("own_role") else agent.role
        yield f"  {agent.id} ({role}): {_prompt_source(agent)}"
    yield from clarification_lines(debate, _WIDTH)
    if debate.recalled_debate_ids:
        yield "Past debates shown"
        yield from (f"  {each}" for each in debate.recalled_debate_ids)
    early = _count_early(debate)
    if early:
        yield "Before the rounds"
        for each in debate.contributions[:early]:
            yield from _contribution_lines(each)
    for number in sorted({each.work.round for each in debate.contributions if each.work.round}):
        yield f"Round {number}"
        yield from _round_lines(debate, number)
        if number == 1 and debate.HasField("first_drafts"):
            yield from vote_lines(debate.first_drafts, _WIDTH)
    works = [each.work for each in debate.contributions[early:]] + [each.work for each in debate.failures]
    if any(not work.round for work in works):
        yield "Answer"
        yield from _round_lines(debate, 0, early)
    yield "Totals"
    yield f"  {rounds_text(debate.current_round)}, {debate.calls} calls, {duration_text(run_seconds(debate))}"
    end = rounds_end_text(debate)
    if end:
        yield f"  {end}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"  {usage.input_tokens:,} tokens read, {usage.output_tokens:,} written{cost}"


def _prompt_source(agent: Agent) -> str:
    """Return `built-in`, or where the prompts came from that replace the role's."""
    own = {"summaries": agent.summary_prompt, "clarifications": agent.clarification_prompt}
    of_role = "its role's" if agent.HasField("own_role") else "built-in"
    told = [agent.system_prompt.source if agent.HasField("system_prompt") else of_role]
    return "; ".join(told + [f"{what}: {prompt.source}" for what, prompt in own.items() if prompt.text])


def _count_early(debate: Debate) -> int:
    """Return how many contributions came before the first round; 0 where there were no rounds."""
    rounds = [bool(each.work.round) for each in debate.contributions]
    return rounds.index(True) if any(rounds) else 0


def _round_lines(debate: Debate, number: int, after: int = 0) -> Iterator[str]:
    for each in debate.contributions[after:]:
        if each.work.round == number:
            yield from _contribution_lines(each)
    for line in failure_lines(each for each in debate.failures if each.work.round == number):
        yield f"  failed: {line}"


def _contribution_lines(contribution: Contribution) -> Iterator[str]:
    work, reply = contribution.work, contribution.reply
    yield f"  {_work_text(work)}: {first_line(reply.rendered or reply.text, _WIDTH)}"
    tokens = reply.usage.input_tokens + reply.usage.output_tokens
    seconds = reply.latency.ToNanoseconds() / 1e9
    yield f"    {seconds:.1f} s, {tokens:,} tokens{_summary_text(contribution)}"
    if reply.tool_calls:
        yield f"    looked up: {_tools_used(reply.tool_calls)}"


def _summary_text(contribution: Contribution) -> str:
    """Return what a summary replaces and what it has, as prompts carry them; empty where it is none."""
    work = contribution.work
    if not work.summarized_characters:
        return ""
    method = f" ({work.summary_method})" if work.summary_method else ""
    return f", {work.summarized_characters:,} → {len(contribution.reply.text):,} characters{method}"


def _tools_used(calls: Iterable[ToolCall]) -> str:
    """Return the tools by name, with how often each was used, in the order of their first use."""
    told = Counter(f"{call.name}{' (failed)' if call.failed else ''}" for call in calls)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in told.items())  # noqa: RUF001


def _work_text(work: Work) -> str:
    target = f" of {work.target_agent_id}" if work.target_agent_id else ""
    return f"{work.agent_id}, {work.title or work.activity}{target}"
