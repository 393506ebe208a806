"""A contribution in a report: whose it is, what it took, and what it says."""

import json
from collections.abc import Iterator
from typing import Final

from pydantic_core import from_json

from parley.orchestrator.api.report_issues import issue_answers
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_rhetoric import marks_of
from parley.runtime.safe_markdown import inline, list_item, quote, span
from parley.v1.agent_pb2 import ToolCall
from parley.v1.debate_pb2 import Contribution, Reply

_MAX_LOOKUP_WIDTH: Final = 80


def contribution_blocks(page: ReportPage, made: Contribution) -> Iterator[str]:
    """Yield a contribution to a round."""
    target = f" on {page.name_of(made.work.target_agent_id)}" if made.work.target_agent_id else ""
    yield f"##### {page.name_of(made.work.agent_id)}{target}"
    yield from facts(made)
    yield quote(page.text_of(made))
    yield from issue_answers(page, made)
    if made.reply.claims_to_cite:
        yield "Claims without a source:"
        yield "\n".join(map(list_item, made.reply.claims_to_cite))


def outside_round_blocks(page: ReportPage, made: Contribution) -> Iterator[str]:
    """Yield a contribution outside of rounds."""
    title = made.work.title or made.work.activity
    yield f"### {inline(title.capitalize())}: {page.name_of(made.work.agent_id)}"
    yield from facts(made)
    yield quote(page.text_of(made))


def facts(made: Contribution) -> Iterator[str]:
    """Yield who answered and what it took, what was marked in it, and what was looked up for it."""
    yield _measures(made)
    yield from marks_of(made)
    if made.reply.tool_calls:
        yield f"Looked up: {', '.join(map(_describe_tool_call, made.reply.tool_calls))}"


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
        span(reply.latency.ToTimedelta()),
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out",
        f"attempt {made.attempt}" if made.attempt > 1 else "",
        "cut off at its length limit" if reply.truncated else "",
        f"stands for {work.summarized_characters:,} characters with {len(reply.text):,}, {work.summary_method}"
        if work.summary_method
        else "",
        f"{reply.characters_cut:,} characters too long, and cut" if reply.characters_cut else "",
        f"{reply.prompt_characters_left_out:,} characters of its prompt left out"
        if reply.prompt_characters_left_out
        else "",
    ]
    return " · ".join(fact for fact in measured if fact)
