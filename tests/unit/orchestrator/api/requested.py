"""Debates as requests ask for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from parley.orchestrator.api.participants import ValidationContext
from parley.orchestrator.api.requests import resolve_request
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.research.sources import WebSources
from parley.orchestrator.roles.catalogue import load_shipped_roles
from parley.runtime.errors import FieldViolation, ParleyError
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import DebateCreated
from tests.support.orchestration import make_limits

AGENTS = (
    agent_pb2.Agent(id="ada", role="architect", tools=[agent_pb2.TOOL_LIST_FILES], tool_call_limit=3),
    agent_pb2.Agent(id="judge", role="judge"),
)


ROSTER = Roster({each.id: each for each in AGENTS}, ("ada",), "judge", frozenset(), frozenset())


async def _run(_debate: Debate) -> Outcome:
    raise AssertionError("nothing is run here")


POLL = Format("poll", 1, _run, limits=make_limits(round=7, max_tokens=5))


def resolve_debate(
    *agents: agent_pb2.Agent,
    formats: Sequence[Format] = all_formats().all(),
    roster: Roster = ROSTER,
    web: WebSources | None = None,
    **fields: Any,
) -> DebateCreated:
    team = [debate_pb2.Participant(agent=each) for each in agents]
    spec = debate_pb2.DebateSpec(question="Which?", agents=team, **fields)
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec)
    return resolve_request(request, ValidationContext(Formats(formats), load_shipped_roles(), roster, web))


def resolve_spec(*agents: agent_pb2.Agent, **fields: Any) -> debate_pb2.DebateSpec:
    return resolve_debate(*agents, **fields).spec


def get_sections(debate: DebateCreated, role: str) -> Mapping[str, str]:
    """What a role is told in a debate."""
    (found,) = (each.sections for each in debate.roles if each.role == role)
    return found


def list_violations(*agents: agent_pb2.Agent, **fields: Any) -> Sequence[FieldViolation]:
    with pytest.raises(ParleyError) as caught:
        resolve_spec(*agents, **fields)
    return caught.value.violations


def resolve_agent(**fields: Any) -> agent_pb2.Agent:
    return agent_pb2.Agent(id="bo", role="security", **fields)
