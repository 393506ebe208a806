"""A contribution in a report: whose it is, what it took, and what it says."""

import json
from typing import Final

from pydantic_core import from_json

from parley.orchestrator.api.report_issues import describe_answers
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_rhetoric import describe_marks
from parley.orchestrator.model.times import seconds_of
from parley.runtime.safe_markdown import inline, list_item, quote, span
from parley.v1.agent_pb2 import ToolCall
from parley.v1.debate_pb2 import Contribution, Reply

_MAX_LOOKUP_WIDTH: Final = 80


def contribution_block(page: ReportPage, made: Contribution) -> str:
    """Return a contribution to a round, in one piece: a debate has thousands."""
    work, reply = made.work, made.reply
    who, target = page.names.of(work.agent_id), work.target_agent_id
    blocks = [
        f"##### {inline(f'{who} on {page.names.of(target)}' if target else who)}",
        *facts(made),
        quote(page.text_of(made)),
    ]
    if answers := reply.issue_answers:
        blocks += ["Answers to issues:", describe_answers(page, made, answers)]
    if claims := reply.claims_to_cite:
        blocks += ["Claims without a source:", "\n".join(map(list_item, claims))]
    return "\n\n".join(blocks)


def outside_round_block(page: ReportPage, made: Contribution) -> str:
    """Return a contribution outside of rounds."""
    work = made.work
    title = f"### {inline((work.title or work.activity).capitalize())}: {page.name_of(work.agent_id)}"
    return "\n\n".join([title, *facts(made), quote(page.text_of(made))])


def facts(made: Contribution) -> list[str]:
    """Return who answered and what it took, what was marked in it, and what was looked up for it."""
    found = [_measures(made)]
    if patterns := made.patterns:
        found.append(f"Patterns: {describe_marks(patterns)}")
    if fallacies := made.fallacies:
        found.append(f"Fallacies: {describe_marks(fallacies)}")
    if calls := made.reply.tool_calls:
        found.append(f"Looked up: {', '.join(map(_describe_tool_call, calls))}")
    return found


def answering_model(reply: Reply) -> str:
    """Return the model that answered, with its route if that shows more."""
    model, route = reply.model, reply.route
    return f"{model} ({route})" if model and route and route != model else model or route


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
    reply, work = made.reply, made.work
    usage = reply.usage
    measured = [
        inline(answering_model(reply)),
        span(seconds_of(reply.latency)),
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out",
    ]
    if made.attempt > 1:
        measured.append(f"attempt {made.attempt}")
    if reply.truncated:
        measured.append("cut off at its length limit")
    if work.summary_method:
        characters = f"{work.summarized_characters:,} characters with {len(reply.text):,}"
        measured.append(f"stands for {characters}, {work.summary_method}")
    if reply.characters_cut:
        measured.append(f"{reply.characters_cut:,} characters too long, and cut")
    if reply.prompt_characters_left_out:
        measured.append(f"{reply.prompt_characters_left_out:,} characters of its prompt left out")
    return " · ".join(filter(None, measured))
