"""Research: what is read in large documents and on the web, and asked of tools, before the agents begin."""

import asyncio
from typing import Any

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.phases.passages import find_passages, shorten_findings
from parley.v1.event_pb2 import StepFailed
from parley.v1.source_pb2 import Findings, ResearchRequest

RESEARCH = Activity("research", "reading the web", title="research on the web")
_KEY = "research"


async def research(debate: Debate, *beside: asyncio.Task[Any]) -> None:
    """Read the web and large documents, and show what was found in all prompts from then on. What cannot be read is a warning.

    `beside` are the tasks that run meanwhile. Their prompts are the same whether they or this come first, so it waits for them.
    """
    async with asyncio.TaskGroup() as tasks:
        finding = tasks.create_task(find_passages(debate))
        reading = tasks.create_task(_read_web(debate))
    nearest, found = finding.result(), reading.result()
    if beside and (nearest is not None or found is not None):
        await asyncio.wait(beside)
    if nearest is not None:
        debate.use_passages(nearest)
    if found is not None:
        await _show_findings(debate, found)


async def _read_web(debate: Debate) -> Findings | StepFailed | None:
    """Return what was found, recorded once; None if the debate is not researched."""
    if not debate.spec.research:
        return None
    request = ResearchRequest(question=debate.spec.question, pages=debate.spec.research_pages)
    return await debate.call_service(_KEY, RESEARCH.create_work(), request, lambda: _find(debate, request))


async def _show_findings(debate: Debate, found: Findings | StepFailed) -> None:
    if isinstance(found, StepFailed):
        debate.warn(_KEY, f"the web was not read, and the debate goes on without: {found.message}")
        return
    for number, warning in enumerate(found.warnings, start=1):
        debate.warn(f"{_KEY}/{number}", warning)
    if found.findings:
        await debate.add_findings(f"{_KEY}/sources", found)


async def _find(debate: Debate, request: ResearchRequest) -> Findings:
    web = debate.services.web
    if web is None:
        raise StepError("RESEARCH_OFF", "this replica has no research switched on")
    found = await web.find(request)
    await shorten_findings(debate, found, web.shown_characters)
    return found
