"""The arena in the `debate:` section: all its keys stand in `arena:`."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from parley.config.formats.concurrency import KEY_OF_CONCURRENCY, ConcurrencyKeys, set_concurrency
from parley.config.formats.format import Format
from parley.v1 import arena_pb2, voting_pb2
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["ARENA", "ArenaEntry", "ArenaKeys", "ConsensusName", "ProtocolName", "TopologyName"]

ProtocolName = Literal["adversarial", "collaborative", "socratic"]
TopologyName = Literal["all-to-all", "round-robin", "ring", "star", "sparse"]
ConsensusName = Literal["majority", "supermajority", "unanimous", "weighted"]

_Percent = Annotated[int, Field(ge=1, le=100)]


@dataclass(frozen=True, slots=True)
class RoundTopologyEntry:
    """The topology of one round."""

    round: Annotated[int, Field(ge=2, le=35, description="The round, from 2.")]
    topology: Annotated[TopologyName, Field(description="Who criticizes whom in it.")]
    hub: Annotated[str | None, Field(description="Of a star, the agent in the middle.")] = None
    sparsity: Annotated[
        float | None, Field(gt=0, le=1, description="Of `sparse`, the probability of each edge.")
    ] = None


@dataclass(frozen=True, slots=True)
class TricksterEntry:
    """How hollow agreement is looked for."""

    max_interventions: Annotated[
        int | None, Field(ge=1, le=10, description="How often it may challenge an agreement. Default: 2.")
    ] = None
    threshold: Annotated[
        _Percent | None,
        Field(description="Percent of probability from which on agreement counts as hollow. Default: 50."),
    ] = None
    asks: Annotated[
        bool, Field(description="Whether the judge is asked, too, what evidence the proposals give.")
    ] = False


@dataclass(frozen=True, slots=True)
class ArenaEntry:
    """How an arena is held."""

    revision_rounds: Annotated[
        int | None, Field(ge=1, le=20, description="Rounds of revision at most. Default: 3.")
    ] = None
    max_extended_rounds: Annotated[
        int | None, Field(ge=0, le=10, description="Rounds that the judge may add. Default: 1.")
    ] = None
    protocol: Annotated[
        ProtocolName | None, Field(description="How agents are to argue. Default: `collaborative`.")
    ] = None
    topology: Annotated[
        TopologyName | None, Field(description="Who criticizes whom. Default: `all-to-all`.")
    ] = None
    hub: Annotated[
        str | None,
        Field(description="Of a star, the agent in the middle. Default: the first that takes part."),
    ] = None
    sparsity: Annotated[
        float | None,
        Field(gt=0, le=1, description="Of `sparse`, the probability of each edge. Default: 0.5."),
    ] = None
    topologies: Annotated[
        tuple[RoundTopologyEntry, ...], Field(description="Topologies of single rounds.")
    ] = ()
    consensus: Annotated[
        ConsensusName | None,
        Field(
            description="How much of the votes a proposal must have. `majority`: more than half; `supermajority`: two thirds; "
            "`unanimous`: all; `weighted`: more than half of their weight by ratings. Default: `weighted`."
        ),
    ] = None
    allow_self_votes: Annotated[
        bool | None,
        Field(description="Whether an agent may vote for its own proposal. Default: true."),
    ] = None
    weighted_by: Annotated[
        Literal["ratings", "elo", "accuracy"] | None,
        Field(
            description="What votes weigh by. `elo`: rating and calibration; `accuracy`: how often the voter was right; "
            "`ratings`: as the ratings service is set. Default: `ratings` with the consensus `weighted`, else nothing."
        ),
    ] = None
    vote_early_end: Annotated[
        bool | None,
        Field(
            description="Whether a vote ends once neither winner nor strength can change any more. Default: true."
        ),
    ] = None
    group_similar_choices: Annotated[
        bool | None,
        Field(description="Whether proposals that say the same beyond doubt count as one. Default: true."),
    ] = None
    ballots: Annotated[
        Literal["first-drafts", "last-vote"] | None,
        Field(
            description="What decides. `first-drafts`: the position of each voter's first draft, written before it had read another; "
            "`last-vote`: the votes over the final proposals. Default: `first-drafts`."
        ),
    ] = None
    judge_ballot: Annotated[
        bool | None,
        Field(description="Whether the judge's own choice counts as one more vote. Default: true."),
    ] = None
    convergence: Annotated[
        bool | None,
        Field(
            description="Whether rounds end early once the agents agree, or no longer move. Default: true."
        ),
    ] = None
    convergence_threshold: Annotated[
        _Percent | None, Field(description="Percent of agreement for that. Default: 90.")
    ] = None
    ready_signal: Annotated[
        bool | None,
        Field(description="Whether rounds end early once enough agents say they are ready. Default: true."),
    ] = None
    ready_share: Annotated[
        _Percent | None, Field(description="Percent of the agents that must be ready. Default: 75.")
    ] = None
    ready_confidence: Annotated[
        _Percent | None, Field(description="Percent that an agent that is ready must be sure. Default: 80.")
    ] = None
    early_stop_confidence: Annotated[
        _Percent | None,
        Field(
            description="Rounds end early once the agents are so sure on average, in percent. Default: off."
        ),
    ] = None
    judge_termination: Annotated[
        bool | None,
        Field(
            description="Whether the judge may end the rounds, asked after each from 2 on. Default: false."
        ),
    ] = None
    unanimous_drafts: Annotated[
        bool | None,
        Field(
            description="Whether no round of critiques is held where all first drafts agree beyond doubt. Default: true."
        ),
    ] = None
    stable_positions: Annotated[
        bool | None,
        Field(
            description="Whether rounds end early once who holds which position hardly changes. Default: true."
        ),
    ] = None
    stable_positions_threshold: Annotated[
        _Percent | None, Field(description="Percent up to which it has hardly changed. Default: 5.")
    ] = None
    sequential: Annotated[
        bool | None,
        Field(
            description="Whether the best rated agents are asked first, and others only while no position is probable enough. "
            "Default: false."
        ),
    ] = None
    sequential_threshold: Annotated[
        int | None, Field(ge=50, le=100, description="Percent of probability for that. Default: 90.")
    ] = None
    grouping_agent: Annotated[
        str | None,
        Field(
            description="The agent that is asked which positions say the same, where it cannot be told. Default: the judge."
        ),
    ] = None
    judge_selection: Annotated[
        Literal["designated", "random", "last", "voted", "by-rating", "by-calibration"] | None,
        Field(
            description="Who judges: the judge of the file, or one of the agents: by lot, the last, the one they vote for, "
            "or the best by rating or calibration; who has proposed nothing comes first. Default: `designated`."
        ),
    ] = None
    team_size: Annotated[
        int | None,
        Field(
            ge=2,
            le=32,
            description="So many of the agents debate, chosen by what the ratings know of them. Default: all.",
        ),
    ] = None
    team_exploration: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Share of these seats that is drawn, to learn of agents. Default: 0.25.",
        ),
    ] = None
    team_domain: Annotated[
        str | None,
        Field(max_length=64, description="The domain whose record counts for that. Default: the debate's."),
    ] = None
    duties: Annotated[
        dict[str, tuple[Literal["proposer", "critic", "voter"], ...]],
        Field(description="What agents take part in, by id. One that is absent has all duties."),
    ] = field(default_factory=dict)
    trickster: Annotated[
        bool | TricksterEntry,
        Field(
            description="Whether agreement that would end the rounds is challenged where it is hollow, that is, rests on little "
            "evidence or on each other's words; or how."
        ),
    ] = False
    observer: Annotated[
        bool, Field(description="Whether rhetorical patterns and fallacies are marked in each contribution.")
    ] = False
    verification: Annotated[
        bool | None,
        Field(description="Whether all are asked if they can live with the answer. Default: true."),
    ] = None


@dataclass(frozen=True)
class ArenaKeys(ConcurrencyKeys):
    """The arena's keys of the `debate:` section."""

    arena: Annotated[ArenaEntry | None, Field(description="Settings of the format `arena`.")] = None


def _enum(kind: Any, prefix: str, name: str | None) -> Any:
    """Return the number of a name, such as `ring`; 0, which stands for the default, for none."""
    return kind.Value(f"{prefix}_{name.replace('-', '_').upper()}") if name else 0


def _set_settings(spec: DebateSpec, keys: ArenaKeys) -> None:
    set_concurrency(spec, keys)
    if keys.arena is not None:
        spec.arena.CopyFrom(_settings(keys.arena))


def _settings(entry: ArenaEntry) -> arena_pb2.ArenaSettings:
    settings = arena_pb2.ArenaSettings(
        revision_rounds=entry.revision_rounds or 0,
        max_extended_rounds=entry.max_extended_rounds,
        protocol=_enum(arena_pb2.DebateProtocol, "DEBATE_PROTOCOL", entry.protocol),
        topologies=[
            arena_pb2.RoundTopology(
                round=each.round, topology=_topology(each.topology, each.hub, each.sparsity)
            )
            for each in entry.topologies
        ],
        judge_choice=_enum(arena_pb2.JudgeChoice, "JUDGE_CHOICE", entry.judge_selection),
        verification=entry.verification,
        grouping_agent_id=entry.grouping_agent or "",
        trickster=_trickster(entry.trickster),
        observer=entry.observer,
    )
    parts = {
        "topology": _topology(entry.topology, entry.hub, entry.sparsity),
        "voting": _voting(entry),
        "stopping": _stopping(entry),
        "team": _team(entry),
    }
    for name, part in parts.items():
        if part.ByteSize():
            getattr(settings, name).CopyFrom(part)
    return settings


def _topology(name: str | None, hub: str | None, sparsity: float | None) -> arena_pb2.Topology:
    kind = _enum(arena_pb2.TopologyKind, "TOPOLOGY_KIND", name)
    return arena_pb2.Topology(kind=kind, hub_agent_id=hub or "", sparsity=sparsity or 0)


def _voting(entry: ArenaEntry) -> voting_pb2.VotingSettings:
    return voting_pb2.VotingSettings(
        method=_enum(voting_pb2.VotingMethod, "VOTING_METHOD", entry.consensus),
        weighted_by=_enum(voting_pb2.VoteWeights, "VOTE_WEIGHTS", entry.weighted_by),
        allow_self_votes=entry.allow_self_votes,
        early_end=entry.vote_early_end,
        group_choices=entry.group_similar_choices,
        ballots=_enum(voting_pb2.VoteBallots, "VOTE_BALLOTS", entry.ballots),
        judge_ballot=entry.judge_ballot,
    )


def _stopping(entry: ArenaEntry) -> arena_pb2.StoppingSettings:
    return arena_pb2.StoppingSettings(
        convergence=entry.convergence,
        convergence_threshold_percent=entry.convergence_threshold or 0,
        ready_signal=entry.ready_signal,
        ready_share_percent=entry.ready_share or 0,
        ready_confidence_percent=entry.ready_confidence or 0,
        confidence_threshold_percent=entry.early_stop_confidence or 0,
        judge_termination=entry.judge_termination,
        unanimous_drafts=entry.unanimous_drafts,
        stable_positions=entry.stable_positions,
        stable_positions_percent=entry.stable_positions_threshold or 0,
        sequential=entry.sequential,
        sequential_percent=entry.sequential_threshold or 0,
    )


def _trickster(entry: bool | TricksterEntry) -> arena_pb2.TricksterSettings | None:  # noqa: FBT001 - as in the file
    if isinstance(entry, bool):
        return arena_pb2.TricksterSettings() if entry else None
    return arena_pb2.TricksterSettings(
        max_interventions=entry.max_interventions or 0,
        threshold_percent=entry.threshold or 0,
        asks=entry.asks,
    )


def _team(entry: ArenaEntry) -> arena_pb2.TeamSettings:
    return arena_pb2.TeamSettings(
        duties=[
            arena_pb2.AgentDuties(
                agent_id=agent, duties=[_enum(arena_pb2.Duty, "DUTY", each) for each in duties]
            )
            for agent, duties in entry.duties.items()
        ],
        size=entry.team_size or 0,
        exploration_share=entry.team_exploration,
        domain=entry.team_domain or "",
    )


def _set_protocol(spec: DebateSpec, name: str) -> None:
    spec.arena.protocol = _enum(arena_pb2.DebateProtocol, "DEBATE_PROTOCOL", name)


def _set_topology(spec: DebateSpec, name: str) -> None:
    """Set the topology of all rounds, whatever the section says of it."""
    spec.arena.topology.CopyFrom(_topology(name, None, None))
    del spec.arena.topologies[:]


def _set_voting(spec: DebateSpec, name: str) -> None:
    spec.arena.voting.method = _enum(voting_pb2.VotingMethod, "VOTING_METHOD", name)


def _set_sequential(spec: DebateSpec, switch: str) -> None:
    spec.arena.stopping.sequential = switch == "on"


def _set_team(spec: DebateSpec, size: str) -> None:
    spec.arena.team.size = int(size)


def _set_trickster(spec: DebateSpec, switch: str) -> None:
    """Switch it on, as the section says, or off."""
    if switch == "on":
        spec.arena.trickster.SetInParent()
    else:
        spec.arena.ClearField("trickster")


def _set_observer(spec: DebateSpec, switch: str) -> None:
    spec.arena.observer = switch == "on"


def _set_rounds(spec: DebateSpec, rounds: int) -> None:
    spec.arena.revision_rounds = rounds


ARENA: Final = Format(
    name="arena",
    keys=ArenaKeys,
    renamed={},
    renamed_inside={},
    without_section="3 rounds of revision, as always",
    set_settings=_set_settings,
    set_rounds=_set_rounds,
    options={
        "protocol": _set_protocol,
        "topology": _set_topology,
        "voting": _set_voting,
        "sequential": _set_sequential,
        "team": _set_team,
        "trickster": _set_trickster,
        "observer": _set_observer,
    },
    key_of_field={
        "spec.arena.revision_rounds": "arena.revision_rounds",
        "spec.arena.max_extended_rounds": "arena.max_extended_rounds",
        "spec.arena.protocol": "arena.protocol",
        "spec.arena.topology": "arena.topology",
        "spec.arena.topology.kind": "arena.topology",
        "spec.arena.topology.hub_agent_id": "arena.hub",
        "spec.arena.topology.sparsity": "arena.sparsity",
        "spec.arena.topologies": "arena.topologies",
        "spec.arena.voting.method": "arena.consensus",
        "spec.arena.voting.weighted_by": "arena.weighted_by",
        "spec.arena.voting.allow_self_votes": "arena.allow_self_votes",
        "spec.arena.stopping.sequential_percent": "arena.sequential_threshold",
        "spec.arena.judge_choice": "arena.judge_selection",
        "spec.arena.grouping_agent_id": "arena.grouping_agent",
        "spec.arena.team.duties": "arena.duties",
        "spec.arena.team.size": "arena.team_size",
        "spec.arena.team.exploration_share": "arena.team_exploration",
        "spec.arena.team.domain": "arena.team_domain",
        "spec.arena.trickster.max_interventions": "arena.trickster.max_interventions",
        "spec.arena.trickster.threshold_percent": "arena.trickster.threshold",
        **KEY_OF_CONCURRENCY,
    },
)
"""Critiques over drawn edges, revisions until a rule holds, a vote, a judge, and an answer that is verified."""
