"""Arenas whose logs are kept."""

from collections.abc import Callable, Sequence

from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_ADVERSARIAL,
    DEBATE_PROTOCOL_SOCRATIC,
    DUTY_CRITIC,
    DUTY_VOTER,
    JUDGE_CHOICE_RANDOM,
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    AgentDuties,
    ArenaSettings,
    StoppingSettings,
    TeamSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONVERGED,
    AssessResponse,
)
from parley.v1.event_pb2 import DebateCreated
from parley.v1.memory_pb2 import CritiquePattern, PastDebate, RecallResponse
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.kept_debates.kept_debate import KeptDebate
from tests.support.orchestration import (
    with_spec,
)
from tests.support.scripted_answers import answer_text
from tests.support.scripted_gateway import ScriptedGateway


def _arena_spec(settings: ArenaSettings, agents: int, **fields: object) -> Callable[[str], DebateCreated]:
    return lambda version: with_spec(arena_spec(agents, settings, **fields), format=version)


def _adversarial_gateway() -> ScriptedGateway:
    """Let one critique fail, and let the agents be sure, but not ready."""
    gateway = ArenaScript(choice="ada", sufficient=False, objections={"bo": "It forgets the cost."}).gateway()
    gateway.text = lambda step, agent: f"{answer_text(step, agent)}\nReady: no, 60 %"
    gateway.fail("round/2/critique/ada/of/bo")
    gateway.patterns = (CritiquePattern(examples=["No figures."], raised=4, taken_up=3),)
    gateway.requirements = (("It must float.", True),)
    gateway.past = (
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260101-000000-aaaaaaaa", question="Is ice wet?", conclusion="No."
            )
        ),
    )
    return gateway


def _agreeing_arena() -> ScriptedGateway:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=95)
    return gateway


def _chosen_arena() -> ScriptedGateway:
    gateway = ArenaScript().gateway()
    gateway.team = ("ada", "cy", "dee")
    return gateway


def arenas(version: str) -> Sequence[KeptDebate]:
    """Return the debates that are kept of a version of the arena.

    - `adversarial`: all nine rounds and one that the judge adds, a star, requirements, a past debate, dissent;
    - `collaborative`: the judge ends the rounds after the critiques, which are drawn sparsely;
    - `socratic`: agents of different duties that agree after the first revision, in a ring, are challenged once, and judge
      themselves;
    - `chosen`: three of four agents, chosen by the ratings, of whom they vote one to judge;
    - `alone`: one agent that examines its own work.
    """
    stopping = StoppingSettings(convergence=False, confidence_threshold_percent=90)
    adversarial = arena_settings(
        protocol=DEBATE_PROTOCOL_ADVERSARIAL, topology=Topology(kind=TOPOLOGY_KIND_STAR), stopping=stopping
    )
    sparse = arena_settings(
        topology=Topology(kind=TOPOLOGY_KIND_SPARSE), stopping=StoppingSettings(judge_termination=True)
    )
    duties = [AgentDuties(agent_id="cy", duties=[DUTY_CRITIC, DUTY_VOTER])]
    socratic = arena_settings(
        protocol=DEBATE_PROTOCOL_SOCRATIC,
        topology=Topology(kind=TOPOLOGY_KIND_RING),
        judge_choice=JUDGE_CHOICE_RANDOM,
        team=TeamSettings(duties=duties),
        trickster=TricksterSettings(max_interventions=1, asks=True),
        observer=True,
    )
    chosen = arena_settings(revision_rounds=1, team=TeamSettings(size=3), judge_choice=JUDGE_CHOICE_VOTED)
    return (
        KeptDebate(
            version,
            "adversarial",
            _arena_spec(adversarial, 3, history_limit=2, patterns=True),
            _adversarial_gateway,
        ),
        KeptDebate(
            version, "collaborative", _arena_spec(sparse, 4), ArenaScript(more_is_of_use=False).gateway
        ),
        KeptDebate(version, "chosen", _arena_spec(chosen, 4), _chosen_arena),
        KeptDebate(version, "socratic", _arena_spec(socratic, 3), _agreeing_arena),
        KeptDebate(
            version, "alone", _arena_spec(arena_settings(revision_rounds=1), 1), ArenaScript().gateway
        ),
    )
