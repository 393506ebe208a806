"""The answer of a debate with all its parts, as CommonMark, in the way of its format."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from parley.orchestrator.api.verdict import tells_all_dissent, verdict_lines
from parley.orchestrator.engine.format import AnswerPart, Format
from parley.orchestrator.model.best_work import describe_stand_in
from parley.orchestrator.model.effect_text import describe_related, effect_lines
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.sources import list_legend
from parley.runtime.safe_markdown import inline, list_item, lower_headings
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import STOP_REASON_ALL_ROUNDS_COMPLETED, STOP_REASON_UNSPECIFIED, Debate

DEMONSTRATION: Final = (
    "a very small model wrote this to show what a debate looks like; it is not to be relied on, and neither memory nor "
    "ratings take it in"
)


def stand_in_line(debate: Debate) -> str:
    """Return in a line that an agent's work stands in for the answer, and why; empty if it does not."""
    if not debate.outcome.HasField("stand_in"):
        return ""
    return f"Stand-in: {describe_stand_in(debate.outcome.stand_in, names_of(debate).of)}."


def answer_parts(
    debate: Debate, debate_format: Format | None, *, below_verdict: bool = False
) -> Iterator[AnswerPart]:
    """Yield the parts of an answer that say something; of a format that is not known here, the answer alone.

    `below_verdict`: also without dissent that the lines of the verdict have whole.
    """
    parts = debate_format.answer(debate) if debate_format else [AnswerPart("", debate.outcome.description)]
    related = AnswerPart("Earlier decisions", items=list(map(describe_related, debate.outcome.related)))
    without_dissent = below_verdict and tells_all_dissent(debate, debate_format)
    for each in (*parts, related):
        if (each.text.strip() or each.items) and not (each.is_dissent and without_dissent):
            yield each


def _effect_part(debate: Debate) -> Iterator[AnswerPart]:
    """Yield what the debate changed, if that is recorded: the same for all formats."""
    if debate.outcome.HasField("effect"):
        most = calls_of_all_rounds(debate)
        lines = effect_lines(
            debate.outcome.effect, calls_before_answer(debate), names_of(debate).of, max_calls=most
        )
        yield AnswerPart("What the debate changed", items=lines, quoted=False)


def answer_markdown(debate: Debate, debate_format: Format | None, *, alone: bool = False) -> str:
    """Return the answer as a page of its own, without how it came about; what agents wrote stands as they wrote it, its headings below the page's own.

    What was decided comes first, in short: the rest may be long, and where only the beginning is shown, that is what matters.
    `alone`: also without who decided it, how sure that is, what the debate changed and which sources it cites, for those who judge the answer.
    Of a demonstration, who decided it and how sure that is says nothing, so it is left out too.
    """
    blocks = [f"*Demonstration: {DEMONSTRATION}.*"] if debate.demonstration else []
    blocks += [f"*{inline(line)}*" for line in [stand_in_line(debate)] if line]
    lines = [] if alone or debate.demonstration else verdict_lines(debate, debate_format)
    parts = answer_parts(debate, debate_format, below_verdict=bool(lines))
    answer, *others = (each for each in parts if not each.is_process)
    first = (AnswerPart("In short", items=lines), replace(answer, title="Answer")) if lines else (answer,)
    shown = [*blocks, *map(_part_markdown, (*first, *others, *([] if alone else _effect_part(debate))))]
    legend = [] if alone else _legend(debate, "\n\n".join(shown))
    return "\n\n".join([*shown, *legend]) + "\n"


def _legend(debate: Debate, shown: str) -> list[str]:
    """Return what the citations of an answer stand for; nothing for an answer without any, and where documents have no numbers."""
    if debate.spec.context and not debate.sources:
        return []
    items = [inline(each) for each in list_legend(shown, debate.sources)]
    return [_part_markdown(AnswerPart("Sources", items=items))] if items else []


def process_markdown(debate: Debate, debate_format: Format | None) -> str:
    """Return how the answer came about; empty if there is nothing to say."""
    return "\n\n".join(
        _part_markdown(each) for each in answer_parts(debate, debate_format) if each.is_process
    )


def _part_markdown(part: AnswerPart) -> str:
    text = "\n".join(map(list_item, part.items)) if part.items else lower_headings(part.text.strip(), 3)
    return f"## {inline(part.title)}\n\n{text}" if part.title else text


def calls_before_answer(debate: Debate) -> int:
    """Return the calls that a debate made up to its answer, so that the answer is shown the same after more calls."""
    keys = [each.key for each in debate.contributions]
    keys += [each.key for each in debate.failures if each.work.agent_id]
    return debate.calls - sum(each.startswith(AFTER_THE_ANSWER) for each in keys)


def calls_of_all_rounds(debate: Debate) -> int:
    """Return the calls up to its answer that a debate makes at most; 0 if it held all of its rounds, or that is not known."""
    if debate.stop_reason in (STOP_REASON_UNSPECIFIED, STOP_REASON_ALL_ROUNDS_COMPLETED):
        return 0
    return debate.estimate.max_calls - debate.spec.analysis


def usage_before_answer(debate: Debate) -> Usage:
    """Return what these calls used; of a call after the answer that failed, what it used is not taken off."""
    usage = Usage()
    usage.CopyFrom(debate.usage)
    for each in debate.contributions:
        if each.key.startswith(AFTER_THE_ANSWER):
            usage.input_tokens -= each.reply.usage.input_tokens
            usage.output_tokens -= each.reply.usage.output_tokens
            if usage.HasField("cost_micros"):
                usage.cost_micros -= each.reply.usage.cost_micros
    return usage
