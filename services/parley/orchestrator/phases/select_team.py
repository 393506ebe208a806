"""The choice of a team: the ratings say which of the agents debate, before anybody is asked."""

from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.v1.arena_pb2 import TeamSettings
from parley.v1.event_pb2 import StepFailed, TeamSelected, Warned
from parley.v1.ratings_pb2 import Candidate, SelectTeamRequest

__all__ = ["TEAM", "select_team"]

TEAM: Final = Activity("team", "choosing the team", title="choice of the team")


async def select_team(debate: Debate, settings: TeamSettings) -> None:
    """Let as many of the agents debate as the settings say, those that the ratings choose; where they say nothing, all do.

    Who was chosen is recorded, with what is known of every agent. Where the ratings are away, the first agents debate.
    """
    agents = [each.id for each in debate.spec.agents]
    if not 0 < settings.size < len(agents):
        return
    request = SelectTeamRequest(
        debate_id=debate.id,
        candidate_agent_ids=agents,
        size=settings.size,
        domain=settings.domain or debate.spec.domain,
        exploration_share=settings.exploration_share if settings.HasField("exploration_share") else None,
    )
    found = await debate.call_service(
        TEAM.name, TEAM.create_work(), request, lambda: debate.services.ratings.select_team(request)
    )
    candidates: list[Candidate] = []
    if isinstance(found, StepFailed):
        chosen = set(agents[: settings.size])
        message = f"the first {settings.size} agents debate, since no team could be chosen: {found.message}"
        debate.record_event(f"{TEAM.name}/warning", Warned(message=message))
    else:
        candidates = list(found.candidates)
        chosen = {each.agent_id for each in candidates if each.chosen}
    debate.set_participants(chosen)
    team = [each for each in agents if each in chosen]
    debate.record_event(f"{TEAM.name}/selected", TeamSelected(agent_ids=team, candidates=candidates))
