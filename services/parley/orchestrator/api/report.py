"""The report of a debate, finished or not, as CommonMark.

Texts of agents and people are in block quotes and list items, which end where we end them, without headings, HTML, images and
definitions of links: nothing in a text can reach the rest of the document, pose as a part of it, or have a reader fetch something.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic_core import from_json

from parley.orchestrator.api.answer import answer_parts, stand_in_line
from parley.orchestrator.api.report_agents import answering_model, name_of
from parley.orchestrator.api.report_opening import opening_blocks
from parley.orchestrator.api.report_rhetoric import marks_of, trickster_blocks
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.feedback import Feedback
from parley.orchestrator.model.contributions import letter_of
from parley.orchestrator.model.spec import participants_of
from parley.orchestrator.model.tasks import phase_of
from parley.orchestrator.model.times import time_of
from parley.runtime.safe_markdown import inline, list_item, quote, span, table
from parley.v1.agent_pb2 import ToolCall, Usage
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    ISSUE_STATUS_UNSPECIFIED,
)
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_COMPLETED,
    Contribution,
    Debate,
    DraftGroups,
    FailedContribution,
    Work,
)

_MAX_LOOKUP_WIDTH: Final = 80
_STATUSES: Final = {
    ISSUE_STATUS_UNSPECIFIED: "answered",
    ISSUE_STATUS_TAKEN_UP: "taken up",
    ISSUE_STATUS_REJECTED: "not taken up",
    ISSUE_STATUS_NOT_ANSWERED: "not answered",
}


def render_report(debate: Debate, debate_format: Format | None, feedback: Feedback | None = None) -> str:
    """Return the report of a debate; its format, if it is known here, names its phases and the parts of its answer.

    `feedback` is a person's feedback on it.
    """
    blocks = [
        f"# Debate {inline(debate.id)}",
        *opening_blocks(debate, debate_format),
        *_before_rounds(debate, debate_format),
        *_first_drafts(debate),
        *_rounds(debate, debate_format),
        *_outside_rounds(debate, debate_format),
        *_feedback(feedback),
        *_warnings_and_failures(debate),
        *_totals(debate),
    ]
    return "\n\n".join(blocks) + "\n"


def _before_rounds(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    """Yield the contributions before the first round."""
    early = _before_first_round(_contributions_to_show(debate, debate_format))
    if early:
        yield "## Before the rounds"
        for made in early:
            yield from _outside_round(debate, made)


def _contributions_to_show(debate: Debate, debate_format: Format | None) -> Sequence[Contribution]:
    """Return the contributions without those that have a section of their own, such as requirements."""
    activities = debate_format.activities if debate_format else ()
    elsewhere = {each.name for each in activities if not each.heading}
    return tuple(
        made for made in debate.contributions if made.is_answer or made.work.activity not in elsewhere
    )


def _before_first_round(contributions: Sequence[Contribution]) -> Sequence[Contribution]:
    """Return the contributions before the first round."""
    if not any(made.work.round for made in contributions):
        return ()
    return tuple(itertools.takewhile(lambda made: not made.work.round, contributions))


def _first_drafts(debate: Debate) -> Iterator[str]:
    if not debate.HasField("first_drafts"):
        return
    drafts = debate.first_drafts
    yield "## Vote over the first drafts"
    yield _majority(drafts)
    for group in drafts.groups:
        names = ", ".join(name_of(debate, agent) for agent in group.agent_ids)
        yield list_item(f"{names}: {group.position}" if group.position else names)


def _majority(drafts: DraftGroups) -> str:
    count = sum(len(group.agent_ids) for group in drafts.groups)
    if not drafts.majority:
        return f"Before anyone read another's draft, no position had more than half of the {count} drafts."
    first = len(drafts.groups[0].agent_ids)
    return f"Before anyone read another's draft, {first} of {count} took the same position."


def _rounds(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    numbers = {made.work.round for made in debate.contributions} | set(debate.begun_rounds)
    headings = _headings(debate_format)
    for number in sorted(numbers - {0}):
        yield f"## Round {number}"
        contributions = [made for made in debate.contributions if made.work.round == number]
        if not contributions:
            yield "Nothing was contributed."
        for activity in _activities(contributions, headings):
            yield f"### {headings.get(activity, inline(activity.capitalize()))}"
            for made in contributions:
                if made.work.activity == activity:
                    yield from _contribution(debate, made)
        for finding in debate.trickster_findings:
            if finding.round == number:
                yield from trickster_blocks(finding)


def _headings(debate_format: Format | None) -> dict[str, str]:
    """Return the headings of a format's activities, in the order in which they are shown."""
    activities = debate_format.activities if debate_format else ()
    return {each.name: each.heading for each in activities if each.heading}


def _activities(contributions: Sequence[Contribution], headings: Mapping[str, str]) -> list[str]:
    found = dict.fromkeys(made.work.activity for made in contributions)
    others = [activity for activity in found if activity not in headings]
    return [activity for activity in headings if activity in found] + others


def _contribution(debate: Debate, made: Contribution) -> Iterator[str]:
    target = f" on {name_of(debate, made.work.target_agent_id)}" if made.work.target_agent_id else ""
    yield f"#### {name_of(debate, made.work.agent_id)}{target}"
    yield from _facts(made)
    yield quote(_display_text(made))
    yield from _issue_answers(debate, made)
    if made.reply.claims_to_cite:
        yield "Claims without a source:"
        yield "\n".join(map(list_item, made.reply.claims_to_cite))


def _issue_answers(debate: Debate, made: Contribution) -> Iterator[str]:
    """Yield the author's answers to the issues that were raised against its proposal."""
    if not made.reply.issue_answers:
        return
    yield "Answers to issues:"
    ids = [agent.id for agent in participants_of(debate)]
    yield "\n".join(
        list_item(
            f"{letter_of(ids, each.critic_agent_id)}.{each.number}, {_STATUSES[each.status]}"
            f"{': ' if each.reason else ''}{each.reason}"
        )
        for each in made.reply.issue_answers
    )


def _facts(made: Contribution) -> Iterator[str]:
    yield _measures(made)
    yield from marks_of(made)
    if made.reply.tool_calls:
        yield f"Looked up: {', '.join(map(_describe_tool_call, made.reply.tool_calls))}"


def _describe_tool_call(call: ToolCall) -> str:
    """Return a use of a tool in a few words, such as `context_search "cache"` or `file_read docs/a.md 1 40`."""
    try:
        arguments = from_json(call.arguments or "{}")
    except ValueError:  # the model wrote no JSON, or it was cut
        arguments = call.arguments
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    text = " ".join(each if isinstance(each, str) else json.dumps(each) for each in values)
    text = text if len(text) <= _MAX_LOOKUP_WIDTH else f"{text[: _MAX_LOOKUP_WIDTH - 1]}…"
    asked = f'"{text}"' if call.name == "context_search" else text
    return inline(f"{call.name} {asked}{' (failed)' if call.failed else ''}")


def _measures(made: Contribution) -> str:
    reply = made.reply
    facts = [
        inline(answering_model(made)),
        span(reply.latency.ToTimedelta()),
        f"{reply.usage.input_tokens:,} tokens in, {reply.usage.output_tokens:,} out",
        f"attempt {made.attempt}" if made.attempt > 1 else "",
        "cut off at its length limit" if reply.truncated else "",
        f"stands for {made.work.summarized_characters:,} characters with {len(reply.text):,}, {made.work.summary_method}"
        if made.work.summary_method
        else "",
        f"{reply.characters_cut:,} characters too long, and cut" if reply.characters_cut else "",
        f"{reply.prompt_characters_left_out:,} characters of its prompt left out"
        if reply.prompt_characters_left_out
        else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _outside_rounds(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    """Yield what was contributed outside of rounds, and the answer."""
    yield "## Answer"
    answers = []
    contributions = _contributions_to_show(debate, debate_format)
    for made in contributions[len(_before_first_round(contributions)) :]:
        if made.work.round == 0 and made.is_answer:
            answers.append(made)
        elif made.work.round == 0:
            yield from _outside_round(debate, made)
    if debate.HasField("outcome"):
        for made in answers:
            yield from _facts(made)
        yield from _answer(debate, debate_format)
        return
    yield (
        "There is no answer."
        if debate.HasField("end_time") or debate.HasField("failure")
        else "There is no answer yet."
    )
    for made in answers:
        yield from _contribution(debate, made)


def _outside_round(debate: Debate, made: Contribution) -> Iterator[str]:
    title = made.work.title or made.work.activity
    yield f"### {inline(title.capitalize())}: {name_of(debate, made.work.agent_id)}"
    yield from _facts(made)
    yield quote(_display_text(made))


def _answer(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    if debate.outcome.HasField("stand_in"):
        yield inline(stand_in_line(debate))
    for part in answer_parts(debate, debate_format):
        if part.title:
            yield f"### {inline(part.title)}"
        if part.items:
            yield "\n".join(list_item(item) for item in part.items)
        else:
            yield quote(part.text) if part.quoted else inline(part.text)
    if debate.outcome.scores:
        yield "### Scores"
        ordered = sorted(debate.outcome.scores, key=lambda each: (-each.score, each.agent_id))
        yield table(("Agent", "Score, 0 to 10"), [(each.agent_id, f"{each.score:g}") for each in ordered])


def _feedback(feedback: Feedback | None) -> Iterator[str]:
    if feedback is None:
        return
    yield "## Feedback"
    yield f"A person says {'yes' if feedback.value > 0 else 'no'} to this debate ({feedback.value:+d})."
    if feedback.message:
        yield quote(feedback.message)


def _warnings_and_failures(debate: Debate) -> Iterator[str]:
    if debate.warnings:
        yield "## Warnings"
        yield "\n".join(list_item(warning) for warning in debate.warnings)
    if debate.failures:
        yield "## Failures"
        yield table(("What", "Agent", "Attempt", "Reason", "Message"), map(_failure_cells, debate.failures))
    for failed in debate.failures:
        if failed.partial_text.strip():
            what, agent, *_ = _failure_cells(failed)
            yield f"What {agent} had written of its {what}, which counts for nothing; no agent of the debate has read it:"
            yield quote(failed.partial_text)


def _failure_cells(failed: FailedContribution) -> tuple[str, ...]:
    work = failed.work
    return (_describe_work(work), work.agent_id, str(failed.attempt), failed.reason, failed.message)


def _describe_work(work: Work) -> str:
    phase = phase_of(work)
    return f"{phase} of {work.target_agent_id}" if work.target_agent_id else phase


def _totals(debate: Debate) -> Iterator[str]:
    yield "## Totals"
    yield "Everything counts here: contributions, summaries, the answer, and calls that failed."
    took = span(time_of(debate.update_time) - time_of(debate.create_time))
    rows = [("Contributions", f"{len(debate.contributions):,}"), ("Model calls", f"{debate.calls:,}")]
    rows += _usage_rows(debate.usage)
    rows.append(
        ("Duration" if debate.status == DEBATE_STATUS_COMPLETED else "Duration until the last event", took)
    )
    yield table(("What", "How much"), rows)


def _usage_rows(usage: Usage) -> list[tuple[str, str]]:
    cost = (
        "not known"
        if not usage.HasField("cost_micros")
        else f"{usage.cost_micros / 1_000_000:.6f} US dollars"
    )
    return [
        ("HTTP requests to providers", f"{usage.requests:,}"),
        ("Tokens in", f"{usage.input_tokens:,}"),
        ("Tokens out", f"{usage.output_tokens:,}"),
        ("Cost", cost),
    ]


def _display_text(made: Contribution) -> str:
    """Return a contribution as people read it: a structured answer rendered, any other text as it is."""
    return made.reply.rendered or made.reply.text
