"""What the prompts of version 1's own phases have in common: the history stands between question and material."""

from collections.abc import Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.tasks import Prompt
from parley.orchestrator.phases import prompting
from parley.orchestrator.phases.prompting import instruction, quotation
from parley.v1.gateway_pb2 import PromptPart

__all__ = ["HISTORY_GIVES", "instruction", "preamble", "quotation"]

HISTORY_GIVES = 3


def preamble(debate: Debate, agent: AgentSpec, history: str = "", guidance: Sequence[str] = ()) -> Prompt:
    """Return what every prompt begins with: who the agent is, the question, the documents, and what was said so far."""
    parts: list[PromptPart] = [*prompting.preamble(debate, agent)]
    if history:
        parts.append(quotation("The debate so far", history, HISTORY_GIVES))
    return (*parts, *prompting.guidance_of(guidance))
