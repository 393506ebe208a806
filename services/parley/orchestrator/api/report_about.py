"""The end of a report: what went wrong, how the debate was run, its agents, and what it took."""

from collections.abc import Iterator, Sequence
from typing import Final

from parley.orchestrator.api.answer import DEMONSTRATION, stand_in_line
from parley.orchestrator.api.conversion import status_word
from parley.orchestrator.api.report_contribution import answering_model, facts
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.model.limits import COST_BUDGET, TOKEN_BUDGET, TOTAL_TIMEOUT
from parley.orchestrator.model.spec import participants_of
from parley.orchestrator.model.tasks import phase_of
from parley.orchestrator.model.times import time_of
from parley.runtime.agent_names import join_words
from parley.runtime.safe_markdown import inline, list_item, moment, quote, span, table
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_COMPLETED,
    Debate,
    FailedContribution,
    ImportedDebate,
    Waiting,
)

_ENDINGS: Final = {
    TOTAL_TIMEOUT: "its time limit was reached",
    TOKEN_BUDGET: "its budget of tokens was reached",
    COST_BUDGET: "its budget of money was reached",
}


def status_lines(page: ReportPage) -> Iterator[str]:
    """Yield the state of a debate, and whatever a reader must know before its answer."""
    debate = page.debate
    if debate.status != DEBATE_STATUS_COMPLETED:
        yield f"Status: {status_word(debate)}"
    if debate.phase and not debate.HasField("end_time"):
        yield f"Phase: {inline(debate.phase)}"
    if debate.HasField("waiting"):
        yield inline(_describe_wait(page, debate.waiting))
    if debate.ended_by:
        yield f"Ended early: {_ENDINGS.get(debate.ended_by, inline(debate.ended_by))}"
    if debate.HasField("failure"):
        yield _describe_failure(page)
    if line := stand_in_line(debate):
        yield inline(line)
    if debate.demonstration:
        yield f"Demonstration: {DEMONSTRATION}"
    if debate.HasField("imported"):
        yield _describe_import(debate.imported)


def _describe_import(imported: ImportedDebate) -> str:
    by = f" by {inline(imported.imported_by)}" if imported.imported_by else ""
    when = moment(time_of(imported.import_time))
    return f"Imported: from another system{by} on {when}; its receipt was signed by the key {inline(imported.key_id)}"


def _describe_failure(page: ReportPage) -> str:
    failure = page.debate.failure
    agent = failure.agent_id and f"agent {page.names.of(failure.agent_id)}"
    places = ", ".join(each for each in (failure.phase, agent) if each)
    happened = f"{failure.reason}: {failure.message}"
    return f"Failed{' in ' if places else ''}{inline(places)}: {inline(happened)}"


def _describe_wait(page: ReportPage, waiting: Waiting) -> str:
    until = moment(time_of(waiting.until))
    if waiting.checkpoint:
        return f"Waits for a person until {until}: {waiting.message}"
    name = page.names.of(waiting.agent_id)
    return f"Waits for {name} in {waiting.phase} until {until}: {waiting.reason}: {waiting.message}"


def warnings_and_failures(page: ReportPage) -> Iterator[str]:
    """Yield the debate's warnings, and what did not come."""
    debate = page.debate
    if debate.warnings:
        yield "## Warnings"
        yield "\n".join(list_item(page.names.put_in(warning)) for warning in dict.fromkeys(debate.warnings))
    if debate.failures:
        yield "## Failures"
        rows = (_failure_cells(page, each) for each in debate.failures)
        yield table(("What", "Agent", "Attempt", "Reason", "Message"), rows)
    for failed in debate.failures:
        if failed.partial_text.strip():
            what, agent, *_ = map(inline, _failure_cells(page, failed))
            yield f"What {agent} had written of its {what}, which counts for nothing; no agent of the debate has read it:"
            yield quote(failed.partial_text)


def _failure_cells(page: ReportPage, failed: FailedContribution) -> tuple[str, ...]:
    work, phase = failed.work, phase_of(failed.work)
    of = f"{phase} of {page.names.of(work.target_agent_id)}" if work.target_agent_id else phase
    return (of, page.names.of(work.agent_id), str(failed.attempt), failed.reason, failed.message)


def about_section(page: ReportPage) -> Iterator[str]:
    """Yield how the debate was run, by whom, and what it took."""
    yield "## About this debate"
    yield "\n".join(f"- {line}" for line in _facts(page))
    yield from _agents(page)
    yield from _context(page.debate)
    yield from _totals(page.debate)


def _facts(page: ReportPage) -> Iterator[str]:
    debate = page.debate
    yield f"Debate: {inline(debate.id)}"
    yield f"Format: {inline(debate.spec.format)}"
    if debate.max_rounds:
        yield f"Rounds: {describe_rounds(debate)}"
    if debate.stop_explanation:
        yield f"Rounds ended: {inline(page.names.put_in(debate.stop_explanation))}"
    elif debate.rounds_ended_by:
        yield f"Ended after round {debate.current_round}: {inline(debate.rounds_ended_by)}"
    for made in page.answers:
        yield f"Answer: {page.name_of(made.work.agent_id)} · {' · '.join(facts(made))}"
    yield f"Accepted: {moment(time_of(debate.create_time))}"
    yield f"Last event: {moment(time_of(debate.update_time))}"


def describe_rounds(debate: Debate) -> str:
    """Return how many rounds were held, such as `3 of 3`; if some were left out, which ones were held."""
    numbers = [each for each in debate.begun_rounds if each]
    what = "held" if debate.HasField("end_time") else "begun"
    if len(numbers) >= debate.max_rounds:
        return f"{len(numbers)} of {len(numbers)} {what}"
    which = f" (number {join_words(_ranges(numbers))})" if numbers and numbers[-1] > len(numbers) else ""
    return f"{len(numbers)} of at most {debate.max_rounds} {what}{which}"


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers as words, such as `1 to 3` and `7`."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and runs[-1][-1] == each - 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return [f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]


def _agents(page: ReportPage) -> Iterator[str]:
    """Yield the table of those who debate, and of the judge if there is one."""
    debate = page.debate
    yield "### Agents"
    agents = [*participants_of(debate)]
    if page.debate_format is None or page.debate_format.is_judged:
        agents.append(debate.spec.judge.agent)
    head = ["Name", "Agent", "Role", "Answered by", "System prompt", "Summary prompt"]
    if debate.spec.HasField("clarifications"):
        head.append("Clarification prompt")
    answered = dict.fromkeys((made.work.agent_id, answering_model(made.reply)) for made in page.contributions)
    models = {each.id: [model for agent, model in answered if model and agent == each.id] for each in agents}
    yield table(head, [_agent_cells(each, models[each.id])[: len(head)] for each in agents])
    if debate.judge_reason:
        judge = page.names.of_judge(debate.spec.judge.agent.id)
        yield f"{inline(f'{judge[:1].upper()}{judge[1:]}')}: {inline(debate.judge_reason)}."


def _agent_cells(agent: Agent, models: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of an agent for whom these models answered."""
    planned = ", ".join(agent.routes) or "the default routes"
    return (
        agent.name,
        agent.id,
        f"{agent.role} ({agent.own_role.source or 'its own'})" if agent.HasField("own_role") else agent.role,
        ", ".join(models) or f"no agent yet; asked of {planned}",
        *(
            prompt.source if prompt.text else "built-in"
            for prompt in (agent.system_prompt, agent.summary_prompt, agent.clarification_prompt)
        ),
    )


def _context(debate: Debate) -> Iterator[str]:
    documents, facts = debate.spec.context, debate.spec.environment
    if facts:
        yield "### Facts given with the question"
        yield "\n".join(list_item(f"{name}: {text}") for name, text in sorted(facts.items()))
    if documents:
        yield "### Context"
        yield "\n".join(f"- {inline(each.path)} ({len(each.text):,} characters)" for each in documents)
    if debate.recalled_debate_ids:
        yield "### Past debates shown to the agents"
        yield "\n".join(f"- {inline(debate)}" for debate in debate.recalled_debate_ids)


def _totals(debate: Debate) -> Iterator[str]:
    yield "### Totals"
    yield "Everything counts here: contributions, summaries, the answer, and calls that failed."
    took = span((time_of(debate.update_time) - time_of(debate.create_time)).total_seconds())
    calls, most = debate.calls, debate.estimate.max_calls
    of_most = f" of at most {most:,}" if most > calls else ""
    rows = [("Contributions", f"{len(debate.contributions):,}"), ("Model calls", f"{calls:,}{of_most}")]
    rows += _usage_rows(debate.usage)
    rows.append(
        ("Duration" if debate.status == DEBATE_STATUS_COMPLETED else "Duration until the last event", took)
    )
    yield table(("What", "How much"), rows)


def cost_text(usage: Usage) -> str:
    """Return what was paid: `0.000507 US dollars`, `nothing`, or that it is not known."""
    if not usage.HasField("cost_micros"):
        return "not known"
    return f"{usage.cost_micros / 1_000_000:.6f} US dollars" if usage.cost_micros else "nothing"


def _usage_rows(usage: Usage) -> list[tuple[str, str]]:
    return [
        ("HTTP requests to providers", f"{usage.requests:,}"),
        ("Tokens in", f"{usage.input_tokens:,}"),
        ("Tokens out", f"{usage.output_tokens:,}"),
        ("Cost", cost_text(usage)),
    ]
