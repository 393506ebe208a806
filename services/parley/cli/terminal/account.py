"""What a finished debate took and came to: round by round, and in one line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from parley.cli.terminal.checkpoints import clarification_lines
from parley.cli.terminal.event_texts import rounds_end_text, vote_lines
from parley.cli.terminal.moments import moment_lines
from parley.cli.terminal.words import (
    calls_text,
    cost_text,
    debating_agents,
    duration_text,
    failure_lines,
    find_first_line,
    relation_text,
    rounds_text,
    run_seconds,
    utc_day_text,
)
from parley.client import Debate
from parley.runtime.printable import printable_line
from parley.v1.agent_pb2 import Agent, ToolCall
from parley.v1.debate_pb2 import (
    STOP_REASON_AGENTS_READY,
    STOP_REASON_ALL_ROUNDS_COMPLETED,
    STOP_REASON_CLEAR_WINNER,
    STOP_REASON_CONFIDENCE_REACHED,
    STOP_REASON_CONVERGED,
    STOP_REASON_COST_BUDGET,
    STOP_REASON_JUDGE,
    STOP_REASON_PERSON,
    STOP_REASON_PROBABLE_ENOUGH,
    STOP_REASON_QUALITY_REACHED,
    STOP_REASON_STABLE_DISAGREEMENT,
    STOP_REASON_STABLE_POSITIONS,
    STOP_REASON_STAGNATION,
    STOP_REASON_TOKEN_BUDGET,
    STOP_REASON_TOO_FEW_AGENTS,
    STOP_REASON_TOTAL_TIMEOUT,
    STOP_REASON_UNANIMOUS_DRAFTS,
    STOP_REASON_UNDISPUTED,
    Contribution,
    DraftGroups,
    Work,
)
from parley.v1.panel_pb2 import EFFORT_QUICK

_WIDTH = 100
_MAX_SOURCES = 6
"""Sources that the last lines name."""


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
    yield f"  {rounds_text(debate.current_round)}, {calls_text(debate)}, {duration_text(run_seconds(debate))}"
    end = rounds_end_text(debate)
    if end:
        yield f"  {end}"
    usage = debate.usage
    cost = f", {cost_text(usage.cost_micros)}" if usage.HasField("cost_micros") else ""
    yield f"  {usage.input_tokens:,} tokens read, {usage.output_tokens:,} written{cost}"


def _prompt_source(agent: Agent) -> str:
    """Return `built-in`, or the sources of the prompts that replace the role's."""
    own = {"summaries": agent.summary_prompt, "clarifications": agent.clarification_prompt}
    of_role = "its role's" if agent.HasField("own_role") else "built-in"
    sources = [agent.system_prompt.source if agent.HasField("system_prompt") else of_role]
    return "; ".join(sources + [f"{what}: {prompt.source}" for what, prompt in own.items() if prompt.text])


def _count_early(debate: Debate) -> int:
    """Return the number of contributions before the first round; 0 if there were no rounds."""
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
    yield f"  {_work_text(work)}: {find_first_line(reply.rendered or reply.text, _WIDTH)}"
    tokens = reply.usage.input_tokens + reply.usage.output_tokens
    seconds = reply.latency.ToNanoseconds() / 1e9
    yield f"    {seconds:.1f} s, {tokens:,} tokens{_summary_text(contribution)}"
    if reply.tool_calls:
        yield f"    looked up: {_tools_used(reply.tool_calls)}"


def _summary_text(contribution: Contribution) -> str:
    """Return the characters that a summary replaces and its own; empty if it is no summary."""
    work = contribution.work
    if not work.summarized_characters:
        return ""
    method = f" ({work.summary_method})" if work.summary_method else ""
    return f", {work.summarized_characters:,} → {len(contribution.reply.text):,} characters{method}"


def _tools_used(calls: Iterable[ToolCall]) -> str:
    """Return the names of the tools with their number of uses, in the order of first use."""
    uses = Counter(f"{call.name}{' (failed)' if call.failed else ''}" for call in calls)
    return ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in uses.items())  # noqa: RUF001


def _work_text(work: Work) -> str:
    target = f" of {work.target_agent_id}" if work.target_agent_id else ""
    return f"{work.agent_id}, {work.title or work.activity}{target}"


_STOP_REASONS: Final = {
    STOP_REASON_ALL_ROUNDS_COMPLETED: "all rounds completed",
    STOP_REASON_CONVERGED: "ended by agreement",
    STOP_REASON_STABLE_DISAGREEMENT: "ended by stable disagreement",
    STOP_REASON_QUALITY_REACHED: "ended by quality",
    STOP_REASON_TOTAL_TIMEOUT: "ended by its time limit",
    STOP_REASON_TOKEN_BUDGET: "ended by its budget of tokens",
    STOP_REASON_COST_BUDGET: "ended by its budget of money",
    STOP_REASON_PERSON: "ended by a person",
    STOP_REASON_AGENTS_READY: "ended since the agents were ready",
    STOP_REASON_CONFIDENCE_REACHED: "ended by confidence",
    STOP_REASON_JUDGE: "ended by the judge",
    STOP_REASON_UNANIMOUS_DRAFTS: "no debate, since the first drafts agree",
    STOP_REASON_STABLE_POSITIONS: "ended since positions hardly changed",
    STOP_REASON_PROBABLE_ENOUGH: "no debate, since the best rated were sure enough",
    STOP_REASON_STAGNATION: "ended since nothing new was said",
    STOP_REASON_CLEAR_WINNER: "ended since one side had won",
    STOP_REASON_TOO_FEW_AGENTS: "ended since too few agents were left",
}
"""Why the rounds ended, in few words."""


def summary_line(debate: Debate) -> str:
    """Return `2 of 3 first drafts agree (ada, bo) · all rounds completed · scores: ada 8, bo 7.5 · m · 7 calls · 1,234 tokens · $0.01 · 5 s`."""
    return " · ".join(_summary_parts(debate))


def news_lines(debate: Debate) -> Iterator[str]:
    """Yield who cited sources, how the answer stands to earlier decisions, and what stands out.

    Such as `Sources: 2 of 5 cited (S1 by ada and bo, S3 by bo)` and `Reverses the decision of 3 March 2026 (ID): The load has fallen.`.
    """
    yield from _source_lines(debate)
    for each in debate.outcome.related:
        if each.relation:
            decided = (
                f"{relation_text(each)} the decision of {utc_day_text(each.decided_at)} ({each.debate_id})"
            )
            yield printable_line(f"{decided}: {each.reason}" if each.reason else f"{decided}.")
    yield from moment_lines(debate)


def _source_lines(debate: Debate) -> Iterator[str]:
    """Yield a line if sources were cited, and what was cited of those that do not exist."""
    known = {each.number for each in debate.sources}
    users: dict[int, dict[str, None]] = {}
    for each in debate.source_uses:
        users.setdefault(each.source, {})[each.agent_id or "the answer"] = None
    cited = [f"S{number} by {' and '.join(who)}" for number, who in sorted(users.items()) if number in known]
    missing = [f"S{number}" for number in sorted(users) if number not in known]
    parts = []
    if cited:
        more = ", …" if len(cited) > _MAX_SOURCES else ""
        parts.append(f"{len(cited)} of {len(known)} cited ({', '.join(cited[:_MAX_SOURCES])}{more})")
    if missing:
        more = ", …" if len(missing) > _MAX_SOURCES else ""
        parts.append(f"cited but missing: {', '.join(missing[:_MAX_SOURCES])}{more}")
    if parts:
        yield printable_line(f"Sources: {'; '.join(parts)}")


def _summary_parts(debate: Debate) -> Iterator[str]:
    yield from agreement_texts(debate)
    if debate.stop_reason == STOP_REASON_UNDISPUTED:
        yield f"undisputed after round {debate.current_round} of {debate.max_rounds}"
    elif debate.stop_reason in _STOP_REASONS:
        is_quick = debate.spec.panel.effort == EFFORT_QUICK
        yield "drafts alone" if is_quick else _STOP_REASONS[debate.stop_reason]
    if debate.outcome.scores:
        yield f"scores: {', '.join(f'{each.agent_id} {each.score:.3g}' for each in debate.outcome.scores)}"
    models = dict.fromkeys(each.reply.model for each in debate.contributions if each.reply.model)
    if models:
        yield ", ".join(models)
    yield calls_text(debate)
    usage = debate.usage
    yield f"{usage.input_tokens + usage.output_tokens:,} tokens"
    if usage.HasField("cost_micros"):
        yield cost_text(usage.cost_micros)
    yield duration_text(run_seconds(debate))


_MAX_PAIRS = 6
"""Above this number of critiques, agreements are counted instead of listed."""


def agreement_texts(debate: Debate) -> Iterator[str]:
    """Yield `2 of 3 first drafts agree (ada, bo)` and `in round 3 bo agreed with ada`; nothing if it is not certain."""
    if debate.first_drafts.groups:
        yield _drafts_text(debate.first_drafts)
    critiques = [each for each in debate.contributions if each.reply.critique.HasField("agrees")]
    if critiques:
        last = max(each.work.round for each in critiques)
        yield f"in round {last} {_critics_text([each for each in critiques if each.work.round == last])}"


def _drafts_text(drafts: DraftGroups) -> str:
    voters = sum(len(group.agent_ids) for group in drafts.groups)
    if not drafts.majority:
        return f"no majority among {voters} first drafts"
    agreeing = drafts.groups[0].agent_ids
    return f"{len(agreeing)} of {voters} first drafts agree ({', '.join(agreeing)})"


def _critics_text(critiques: Sequence[Contribution]) -> str:
    agreed = [each.work for each in critiques if each.reply.critique.agrees]
    if not agreed:
        return "no critic agreed"
    if len(agreed) == len(critiques):
        return "every critic agreed"
    if len(agreed) > _MAX_PAIRS:
        return f"{len(agreed)} of {len(critiques)} critiques agreed"
    authors = dict.fromkeys(each.target_agent_id for each in agreed)
    return "; ".join(
        f"{' and '.join(each.agent_id for each in agreed if each.target_agent_id == author)} agreed with {author}"
        for author in authors
    )
