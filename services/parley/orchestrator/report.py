"""The report of a debate, finished or not, as CommonMark.

What agents and people wrote stands in block quotes, as they wrote it: a quote ends where we end it, so no fence left
open, heading or stray tag in a text can reach the rest of the document.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from parley.orchestrator.contributions import label
from parley.orchestrator.events import Intervened, Solution, ToolCall, Usage, Work
from parley.orchestrator.rows import COMPLETED
from parley.orchestrator.spec import AgentSpec
from parley.orchestrator.state import Contribution, DebateState, Failure, FirstDraftVote, Waiting

__all__ = ["render"]

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_LOOKUP_WIDTH: Final = 80
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~&])")
_HEADINGS: Final = {
    "summary": "Summaries",
    "proposal": "Proposals",
    "critique": "Critiques",
    "refinement": "Refinements",
    "assessment": "Assessments",
}
"""Headings of the activities of a round, in the order in which they are shown."""
_ENDINGS: Final = {
    "total_timeout": "its time limit was reached",
    "token_budget": "its budget of tokens was reached",
    "cost_budget": "its budget of money was reached",
}


def render(debate_id: str, state: DebateState) -> str:
    """Return the report of a debate."""
    blocks = [
        f"# Debate {_inline(debate_id)}",
        _overview(state),
        "## Question",
        _quote(state.spec.question),
        *_context(state),
        *_agents(state),
        *_wishes(state),
        *_first_drafts(state),
        *_rounds(state),
        *_judge(state),
        *_troubles(state),
        *_totals(state),
    ]
    return "\n\n".join(blocks) + "\n"


def _overview(state: DebateState) -> str:
    lines = [f"Status: {state.status.lower()}"]
    if not state.ended and state.phase:
        lines.append(f"Phase: {_inline(state.phase)}")
    if state.waiting:
        lines.append(_inline(_waited_for(state.waiting)))
    if state.ended_by:
        lines.append(f"Ended early: {_ENDINGS.get(state.ended_by, _inline(state.ended_by))}")
    if state.failure:
        failure = state.failure
        where = ", ".join(
            each for each in (failure.phase, failure.agent and f"agent {failure.agent}") if each
        )
        happened = f"{failure.reason}: {failure.message}"
        lines.append(f"Failed{' in ' if where else ''}{_inline(where)}: {_inline(happened)}")
    lines.append(f"Format: {_inline(state.spec.format)}")
    lines.append(f"Rounds: {state.current_round} of {state.spec.rounds}")
    lines.append(f"Accepted: {_time(state.created_at)}")
    lines.append(f"Last event: {_time(state.updated_at)}")
    return "\n".join(f"- {line}" for line in lines)


def _waited_for(waiting: Waiting) -> str:
    until = _time(waiting.until)
    if waiting.checkpoint:
        return f"Waits for a person until {until}: {waiting.message}"
    return f"Waits for {waiting.agent} in {waiting.phase} until {until}: {waiting.reason}: {waiting.message}"


def _context(state: DebateState) -> Iterator[str]:
    documents = state.spec.context
    if documents:
        yield "## Context"
        yield "\n".join(f"- {_inline(each.path)} ({len(each.text):,} characters)" for each in documents)
    if state.recalled:
        yield "## Past debates shown to the agents"
        yield "\n".join(f"- {_inline(debate)}" for debate in state.recalled)


def _agents(state: DebateState) -> Iterator[str]:
    yield "## Agents"
    yield "Agents know each other by letter alone; the texts below speak of them so."
    rows = [(label(state.spec, agent.id), *_agent_cells(state, agent)) for agent in state.spec.agents]
    rows.append(("judge", *_agent_cells(state, state.spec.judge)))
    yield _table(("Letter", "Agent", "Name", "Role", "Answered by", "System prompt", "Summary prompt"), rows)


def _agent_cells(state: DebateState, agent: AgentSpec) -> tuple[str, ...]:
    answered = (_answered_by(made) for made in state.contributions if made.work.agent == agent.id)
    planned = ", ".join(agent.routes) or "the default routes"
    return (
        agent.id,
        agent.name,
        agent.role,
        ", ".join(dict.fromkeys(each for each in answered if each)) or f"nobody yet; asked of {planned}",
        agent.system_prompt.source if agent.system_prompt else "built-in",
        agent.summary_prompt.source if agent.summary_prompt else "built-in",
    )


def _answered_by(made: Contribution) -> str:
    model, route = made.reply.model, made.reply.route
    return f"{model} ({route})" if model and route and route != model else model or route


def _wishes(state: DebateState) -> Iterator[str]:
    if state.wishes:
        yield "## Interventions"
        yield "\n".join(_item(_wish(wish)) for wish in state.wishes)


def _wish(wish: Intervened) -> str:
    about = f" {_inline(wish.agent)}" if wish.agent else ""
    return f"{wish.wish}{about}: {wish.text}" if wish.text else f"{wish.wish}{about}"


def _first_drafts(state: DebateState) -> Iterator[str]:
    vote = state.first_draft_vote
    if vote is None:
        return
    yield "## Vote over the first drafts"
    yield _outcome(vote)
    for group in vote.groups:
        names = ", ".join(_name(state, agent) for agent in group.agents)
        yield _item(f"{names}: {group.position}" if group.position else names)


def _outcome(vote: FirstDraftVote) -> str:
    drafts = sum(len(group.agents) for group in vote.groups)
    if not vote.majority:
        return f"Before anyone read another's draft, no position had more than half of the {drafts} drafts."
    return f"Before anyone read another's draft, {len(vote.groups[0].agents)} of {drafts} took the same position."


def _rounds(state: DebateState) -> Iterator[str]:
    numbers = {made.work.round for made in state.contributions} | set(range(1, state.current_round + 1))
    for number in sorted(numbers - {0}):
        yield f"## Round {number}"
        held = [made for made in state.contributions if made.work.round == number]
        if not held:
            yield "Nothing was contributed."
        for activity in _activities(held):
            yield f"### {_HEADINGS.get(activity, _inline(activity.capitalize()))}"
            for made in held:
                if made.work.activity == activity:
                    yield from _contribution(state, made)


def _activities(held: Sequence[Contribution]) -> list[str]:
    found = dict.fromkeys(made.work.activity for made in held)
    others = [activity for activity in found if activity not in _HEADINGS]
    return [activity for activity in _HEADINGS if activity in found] + others


def _contribution(state: DebateState, made: Contribution) -> Iterator[str]:
    target = f" on {_name(state, made.work.target)}" if made.work.target else ""
    yield f"#### {_name(state, made.work.agent)}{target}"
    yield from _facts(made)
    yield _quote(_readable(made.reply.text))


def _facts(made: Contribution) -> Iterator[str]:
    yield _measures(made)
    if made.reply.tool_calls:
        yield f"Looked up: {', '.join(map(_lookup, made.reply.tool_calls))}"


def _lookup(call: ToolCall) -> str:
    """Return a use of a tool in a few words, such as `context_search "cache"` or `file_read docs/a.md 1 40`."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:  # the model wrote something else, or it was cut
        arguments = call.arguments
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    told = " ".join(each if isinstance(each, str) else json.dumps(each) for each in values)
    told = told if len(told) <= _LOOKUP_WIDTH else f"{told[: _LOOKUP_WIDTH - 1]}…"
    asked = f'"{told}"' if call.name == "context_search" else told
    return _inline(f"{call.name} {asked}{' (failed)' if call.failed else ''}")


def _measures(made: Contribution) -> str:
    reply = made.reply
    facts = [
        _inline(_answered_by(made)),
        _span(timedelta(milliseconds=reply.latency_ms)),
        f"{reply.usage.input_tokens:,} tokens in, {reply.usage.output_tokens:,} out",
        f"attempt {made.attempt}" if made.attempt > 1 else "",
        "cut off at its length limit" if reply.truncated else "",
        f"{reply.left_out:,} characters of its prompt left out" if reply.left_out else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _judge(state: DebateState) -> Iterator[str]:
    yield "## Judge"
    answers = []
    for made in state.contributions:
        if made.work.round == 0 and made.work.activity == "synthesis":
            answers.append(made)
        elif made.work.round == 0:
            yield f"### {_inline(made.work.activity.capitalize())}: {_name(state, made.work.agent)}"
            yield from _facts(made)
            yield _quote(_readable(made.reply.text))
    if state.solution is not None:
        yield "### Answer"
        for made in answers:
            yield from _facts(made)
        yield from _answer(state, state.solution)
        return
    yield "There is no answer." if state.ended or state.failure else "There is no answer yet."
    for made in answers:
        yield from _contribution(state, made)


def _answer(state: DebateState, solution: Solution) -> Iterator[str]:
    yield _quote(solution.description)
    if solution.implementation:
        yield "### Implementation"
        yield _quote(solution.implementation)
    unmet = [f"{each.text}{' (a must)' if each.hard else ''}" for each in solution.unfulfilled_requirements]
    for heading, items in (
        ("Trade-offs", solution.tradeoffs),
        ("Recommendations", solution.recommendations),
        ("Unfulfilled requirements", unmet),
        ("Open questions", solution.open_questions),
    ):
        if items:
            yield f"### {heading}"
            yield "\n".join(_item(item) for item in items)
    yield "### Confidence"
    by = f", by {_name(state, solution.synthesized_by)}" if solution.synthesized_by else ""
    yield f"{solution.confidence} of 100{by}"
    if solution.scores:
        yield "### Scores"
        ordered = sorted(solution.scores.items(), key=lambda each: (-each[1], each[0]))
        yield _table(("Agent", "Score, 0 to 10"), [(agent, f"{score:g}") for agent, score in ordered])


def _troubles(state: DebateState) -> Iterator[str]:
    if state.warnings:
        yield "## Warnings"
        yield "\n".join(_item(warning) for warning in state.warnings)
    if state.failures:
        yield "## Failures"
        yield _table(("What", "Agent", "Attempt", "Reason", "Message"), map(_failure_cells, state.failures))


def _failure_cells(failed: Failure) -> tuple[str, ...]:
    step = failed.step
    return (_what(step.work), step.work.agent, str(failed.attempt), step.reason, step.message)


def _what(work: Work) -> str:
    return f"{work.phase} of {work.target}" if work.target else work.phase


def _totals(state: DebateState) -> Iterator[str]:
    yield "## Totals"
    yield "Everything counts here: contributions, summaries, the judge, and calls that failed."
    took = _span(state.updated_at - state.created_at)
    rows = [("Contributions", f"{len(state.contributions):,}"), ("Model calls", f"{state.calls:,}")]
    rows += _usage_rows(state.usage)
    rows.append(("Duration" if state.status == COMPLETED else "Duration until the last event", took))
    yield _table(("What", "How much"), rows)


def _usage_rows(usage: Usage) -> list[tuple[str, str]]:
    cost = "not known" if usage.cost_micros is None else f"{usage.cost_micros / 1_000_000:.6f} US dollars"
    return [
        ("HTTP requests to providers", f"{usage.attempts:,}"),
        ("Tokens in", f"{usage.input_tokens:,}"),
        ("Tokens out", f"{usage.output_tokens:,}"),
        ("Cost", cost),
    ]


def _name(state: DebateState, agent: str) -> str:
    """Return how an agent is called in headings: its name, and its id where that differs."""
    for each in (*state.spec.agents, state.spec.judge):
        if each.id == agent and each.name != agent:
            return f"{_inline(each.name)} ({_inline(agent)})"
    return _inline(agent)


def _readable(text: str) -> str:
    """Return a structured answer as indented JSON in a fence, and any other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        return f"```json\n{json.dumps(json.loads(text), indent=2, ensure_ascii=False)}\n```"
    except ValueError:
        return text


def _quote(text: str) -> str:
    lines = _LINE_END.split(text)
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def _item(text: str) -> str:
    """Return a list item; the lines after the first are indented, so that they stay in it."""
    first, *rest = _LINE_END.split(text.strip())
    if first and not first.strip("- \t"):
        first = f"\\{first}"  # after the item's own dash, nothing but dashes would be a line across the page
    return "\n".join([f"- {first}", *(f"  {line}" if line.strip() else "" for line in rest)])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([_inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _inline(text: str) -> str:
    """Return text on one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
