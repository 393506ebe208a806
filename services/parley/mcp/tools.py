"""The tools: hold a debate, start, get, list and steer debates, and search past ones."""

from collections.abc import Callable, Sequence
from inspect import getdoc
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools.base import Tool
from mcp_types import InputRequiredResult, ToolAnnotations
from pydantic import Field

from parley.client import DebateSpec
from parley.mcp.access import OpenClient
from parley.mcp.call import DebateCall
from parley.mcp.errors import translate_tool_errors
from parley.mcp.readings import read_debate, to_line, to_past_decision
from parley.mcp.results import DebateList, DebateResult, PastDecisions, Started, Steered
from parley.mcp.specification import CreateSpec, Wish, complete_spec
from parley.mcp.steering import Act, Action, steer
from parley.mcp.strict_tool import StrictTool
from parley.runtime.errors import invalid_argument
from parley.v1.debate_pb2 import DebateStatus

_QUESTION_CHARACTERS: Final = 100_000
_CONTEXT_CHARACTERS: Final = 500_000
_ID_CHARACTERS: Final = 64

_Context = Context[Any, Any]
_Question = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_QUESTION_CHARACTERS,
        description="What is debated, with all that an expert needs to know.",
    ),
]
_Format = Annotated[
    Literal["default", "panel", "arena", "moderated"],
    Field(
        description="panel: critique and revision, then a judge. arena: rounds, then a vote. moderated: perspectives and a decision document."
    ),
]
_Effort = Annotated[
    Literal["default", "quick", "standard", "thorough"],
    Field(
        description="For a panel alone. quick: drafts, then the answer. standard: rounds as long as something is disputed. thorough: all rounds."
    ),
]
_Text = Annotated[
    str,
    Field(
        max_length=_CONTEXT_CHARACTERS,
        description="A text that the agents may read, such as code or a draft.",
    ),
]
_Agents = Annotated[
    list[str],
    Field(max_length=32, description="Ids of the agents that debate. Empty: the default team."),
]
_Ask = Annotated[
    bool,
    Field(
        description="Whether the person may be asked: questions before the debate, and checkpoints of the format moderated."
    ),
]
_DebateId = Annotated[
    str, Field(min_length=1, max_length=_ID_CHARACTERS, description="The debate's id, `deb-…`.")
]


class DebateTools:
    """The tools, for callers that `open_client` returns a client of the orchestrator for."""

    def __init__(
        self,
        open_client: OpenClient,
        create_spec: CreateSpec,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._open_client = open_client
        self._create_spec = create_spec
        self._is_stopping = is_stopping

    def create_tools(self) -> list[Tool]:
        """Return the tools, for a server to offer."""
        writes = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        steers = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)
        offered: Sequence[tuple[str, Callable[..., Any], ToolAnnotations]] = (
            ("Hold a debate", self.debate, writes),
            ("Start a debate", self.start_debate, writes),
            ("Get a debate", self.get_debate, reads),
            ("List debates", self.list_debates, reads),
            ("Steer a debate", self.steer_debate, steers),
            ("Search past debates", self.search_past_debates, reads),
        )
        return [
            StrictTool.from_function(call, title=title, description=getdoc(call), annotations=hints)
            for title, call, hints in offered
        ]

    async def debate(
        self,
        ctx: _Context,
        question: _Question,
        format: _Format = "default",  # noqa: A002 (the argument's name)
        context: _Text = "",
        agents: _Agents = [],  # noqa: B006 (never changed)
        ask: _Ask = False,  # noqa: FBT002
        effort: _Effort = "default",
        cancel_with_call: Annotated[  # noqa: FBT002
            bool,
            Field(
                description="Whether cancelling this call cancels the debate. Otherwise it goes on, and get_debate finds it."
            ),
        ] = False,
    ) -> DebateResult | InputRequiredResult:
        """Put a question to several AI agents that debate it, and return one answer with votes, dissent and how sure it is.

        Takes minutes; progress comes all the way. If it waits for a person who cannot be asked here, it returns what is waited for.
        """
        with translate_tool_errors():
            call = DebateCall(await self._open_client(ctx), ctx, self._is_stopping)
            spec = self._specify(Wish(question, _read_word(format), context, agents, ask, _read_word(effort)))
            return await call.run(spec, cancel_with_call=cancel_with_call)

    async def start_debate(
        self,
        ctx: _Context,
        question: _Question,
        format: _Format = "default",  # noqa: A002 (the argument's name)
        context: _Text = "",
        agents: _Agents = [],  # noqa: B006 (never changed)
        ask: _Ask = False,  # noqa: FBT002
        effort: _Effort = "default",
    ) -> Started:
        """Start a debate and return its id at once; it runs by itself."""
        with translate_tool_errors():
            spec = self._specify(Wish(question, _read_word(format), context, agents, ask, _read_word(effort)))
            debate_id = await (await self._open_client(ctx)).create_debate(spec)
        return Started(debate_id=debate_id, next="it takes minutes; get_debate shows how it stands")

    async def get_debate(self, ctx: _Context, debate_id: _DebateId) -> DebateResult:
        """Return a debate as it stands: its answer with votes, dissent and how sure it is, or what it waits for."""
        with translate_tool_errors():
            return await read_debate(await self._open_client(ctx), debate_id)

    async def list_debates(
        self,
        ctx: _Context,
        limit: Annotated[int, Field(ge=1, le=100, description="Debates at most.")] = 20,
        status: Annotated[
            Literal["any", "pending", "running", "waiting", "paused", "completed", "failed", "cancelled"],
            Field(description="Only those in this state."),
        ] = "any",
    ) -> DebateList:
        """List debates, newest first."""
        statuses = [DebateStatus.Value(f"DEBATE_STATUS_{status.upper()}")] if status != "any" else []
        found = []
        with translate_tool_errors():
            async for each in (await self._open_client(ctx)).list(statuses, page_size=limit + 1):
                found.append(to_line(each))
                if len(found) > limit:
                    break
        return DebateList(debates=found[:limit], more=len(found) > limit)

    async def steer_debate(
        self,
        ctx: _Context,
        debate_id: _DebateId,
        action: Annotated[Action, Field(description="What is done.")],
        text: Annotated[
            str,
            Field(
                max_length=8192,
                description="Guidance, an answer, a comment on an approval, or the reason of a cancellation.",
            ),
        ] = "",
        answers: Annotated[
            dict[str, str], Field(max_length=100, description="Answers to single questions, by their ids.")
        ] = {},  # noqa: B006 (never changed)
        agent_id: Annotated[str, Field(max_length=128, description="The agent to mute or unmute.")] = "",
        checkpoint: Annotated[
            str,
            Field(
                max_length=256,
                description="The checkpoint that it is for, as `waiting` names it. Empty: the open one.",
            ),
        ] = "",
    ) -> Steered:
        """Steer a debate: answer its checkpoint, give guidance, end its rounds, pause, resume or cancel it, mute agents.

        Approve or refuse only as the person told you.
        """
        act = Act(action, text, answers, agent_id, checkpoint)
        with translate_tool_errors():
            event = await steer(await self._open_client(ctx), debate_id, act)
        return Steered(
            debate_id=debate_id, action=action, event=event, next="get_debate shows how the debate stands"
        )

    async def search_past_debates(
        self,
        ctx: _Context,
        text: Annotated[
            str, Field(min_length=1, max_length=10_000, description="What they should be about.")
        ],
        limit: Annotated[int, Field(ge=1, le=20, description="Debates at most.")] = 5,
        domain: Annotated[
            str, Field(max_length=64, description="Only debates of this domain. Empty: all.")
        ] = "",
    ) -> PastDecisions:
        """Find what past debates decided about the like, most alike first, with how sure it was and who disagreed."""
        with translate_tool_errors():
            found = (await self._open_client(ctx)).search_memory(text, limit=limit, domain=domain)
            return PastDecisions(debates=[to_past_decision(each) async for each in found])

    def _specify(self, wish: Wish) -> DebateSpec:
        """Return the specification. Raise ParleyError for a wish that it cannot fulfil."""
        if wish.effort and wish.format not in {"", "panel"}:
            raise invalid_argument((), message="effort is for the format panel alone: leave one of them out")
        return complete_spec(self._create_spec(wish), wish)


def _read_word(word: str) -> str:
    return "" if word == "default" else word
