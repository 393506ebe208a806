"""The specification of a debate that a tool starts."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from parley.client import DebateSpec
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.panel_pb2 import Effort

_CONTEXT_PATH = "context.md"


class Wish(Struct, frozen=True):
    """What the caller of a tool wants debated.

    Attributes:
        format: Its name; empty: the default.
        context: A text that the agents may read; empty: none.
        agents: Their ids; empty: the default team.
        ask: Whether the person may be asked, at the beginning and at checkpoints.
        effort: How much a panel asks: `quick`, `standard` or `thorough`; empty: the default.
    """

    question: str
    format: str = ""
    context: str = ""
    agents: Sequence[str] = ()
    ask: bool = False
    effort: str = ""


CreateSpec = Callable[[Wish], DebateSpec]
"""Makes the specification that `complete_spec` completes; raises ParleyError for a wish that it cannot fulfil."""


def create_plain_spec(wish: Wish) -> DebateSpec:
    """Return the specification with the defaults of the orchestrator."""
    spec = DebateSpec(question=wish.question, format=wish.format)
    for agent_id in wish.agents:
        spec.agents.add(agent_id=agent_id)
    if wish.effort:
        spec.panel.effort = Effort.Value(f"EFFORT_{wish.effort.upper()}")
    return spec


def complete_spec(spec: DebateSpec, wish: Wish) -> DebateSpec:
    """Add the text, and say whether a person is asked; a choice that the specification makes already stays."""
    if wish.context:
        spec.context.append(ContextDocument(path=_CONTEXT_PATH, text=wish.context))
    if wish.ask:
        spec.clarifications.SetInParent()
    else:
        spec.ClearField("clarifications")
    is_moderated = spec.format.partition("@")[0] == "moderated" or spec.HasField("moderated")
    if is_moderated and (wish.ask or not spec.moderated.HasField("checkpoints")):
        spec.moderated.checkpoints = wish.ask
    return spec
