"""The agents in a report: their roles, the models that answered, and their names."""

from collections.abc import Iterator

from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.contributions import letter_of
from parley.orchestrator.model.spec import participants_of
from parley.runtime.safe_markdown import inline, table
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Contribution, Debate


def agents_section(debate: Debate, debate_format: Format | None) -> Iterator[str]:
    """Yield the table of those who debate, and of the judge if there is one."""
    yield "## Agents"
    yield "Agents know each other by letter alone; the texts below speak of them so."
    ids = [agent.id for agent in participants_of(debate)]
    rows = [(letter_of(ids, agent.id), *_agent_cells(debate, agent)) for agent in participants_of(debate)]
    if debate_format is None or debate_format.is_judged:
        rows.append(("judge", *_agent_cells(debate, debate.spec.judge.agent)))
    head = ["Letter", "Agent", "Name", "Role", "Answered by", "System prompt", "Summary prompt"]
    if debate.spec.HasField("clarifications"):
        head.append("Clarification prompt")
    yield table(head, [row[: len(head)] for row in rows])
    if debate.judge_reason:
        yield f"The judge {inline(debate.spec.judge.agent.id)}: {inline(debate.judge_reason)}."


def _agent_cells(debate: Debate, agent: Agent) -> tuple[str, ...]:
    answered = (answering_model(made) for made in debate.contributions if made.work.agent_id == agent.id)
    planned = ", ".join(agent.routes) or "the default routes"
    return (
        agent.id,
        agent.name,
        f"{agent.role} ({agent.own_role.source or 'its own'})" if agent.HasField("own_role") else agent.role,
        ", ".join(dict.fromkeys(each for each in answered if each)) or f"no agent yet; asked of {planned}",
        *(
            prompt.source if prompt.text else "built-in"
            for prompt in (agent.system_prompt, agent.summary_prompt, agent.clarification_prompt)
        ),
    )


def answering_model(made: Contribution) -> str:
    """Return the model that answered, with its route if that shows more."""
    model, route = made.reply.model, made.reply.route
    return f"{model} ({route})" if model and route and route != model else model or route


def name_of(debate: Debate, agent: str) -> str:
    """Return an agent's name in headings: its name, and its id if that differs."""
    for each in (*participants_of(debate), debate.spec.judge.agent):
        if each.id == agent and each.name != agent:
            return f"{inline(each.name)} ({inline(agent)})"
    return inline(agent)
