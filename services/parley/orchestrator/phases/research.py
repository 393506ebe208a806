"""Research: what is read on the web and asked of tools before the agents begin, and shown to them as numbered sources."""

import asyncio
from typing import Any

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.phases.passages import shorten_findings
from parley.v1.event_pb2 import StepFailed
from parley.v1.source_pb2 import Findings, ResearchRequest

RESEARCH = Activity("research", "reading the web", title="research on the web")
_KEY = "research"


async def research(debate: Debate, *beside: asyncio.Task[Any]) -> None:
    """Read the web, and show what was found in all prompts from then on. What cannot be read is a warning.

    `beside` are the tasks that run meanwhile. Their prompts are the same whether they or the web come first, so it waits for them.
    """
    if not debate.spec.research:
        return
    request = ResearchRequest(question=debate.spec.question, pages=debate.spec.research_pages)
    found = await debate.call_service(_KEY, RESEARCH.create_work(), request, lambda: _find(debate, request))
    if beside:
        await asyncio.wait(beside)
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
