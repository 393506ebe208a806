"""What is learned of agents beside their ratings."""

from datetime import UTC, datetime

from parley.ratings.match import Encounter, Match, PhaseResult
from parley.ratings.profiles import AgentProfiles
from parley.ratings.table import Table
from parley.v1.ratings_pb2 import Relationship, Strength

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def count_matches(*matches: Match) -> AgentProfiles:
    found = AgentProfiles()
    for each in matches:
        found.count(each)
    return found


def test_a_match_that_a_table_counts_makes_agents_acquainted() -> None:
    table = Table()
    table.count(Match("d1", "data", {"ada": 9, "bo": 4}, NOON, phases=(PhaseResult("ada", "vote", 2),)))
    assert table.profiles.strengths("ada") == [
        Strength(domain="", phase="vote", debates=1, mean_score=2),
        Strength(domain="data", phase="vote", debates=1, mean_score=2),
    ]


def test_strengths_are_the_mean_scores_by_domain_and_phase_and_over_all_domains() -> None:
    scores = {"ada": 5.0, "bo": 5.0}
    found = count_matches(
        Match(
            "d1",
            "data",
            scores,
            NOON,
            phases=(PhaseResult("ada", "critique", 8), PhaseResult("ada", "vote", 2)),
        ),
        Match("d2", "data", scores, NOON, phases=(PhaseResult("ada", "critique", 4),)),
        Match("d3", "law", scores, NOON, phases=(PhaseResult("ada", "critique", 3),)),
    )
    assert found.strengths("ada") == [
        Strength(domain="", phase="critique", debates=3, mean_score=5),
        Strength(domain="", phase="vote", debates=1, mean_score=2),
        Strength(domain="data", phase="critique", debates=2, mean_score=6),
        Strength(domain="data", phase="vote", debates=1, mean_score=2),
        Strength(domain="law", phase="critique", debates=1, mean_score=3),
    ]
    assert found.strengths("ada")[2].mean_score == 6
    assert found.strengths("bo") == []


def test_a_relationship_is_the_same_from_both_sides_but_for_who_won() -> None:
    found = count_matches(
        Match("d1", "data", {"ada": 9, "bo": 4, "cy": 4}, NOON, encounters=(Encounter("ada", "bo", 2, 1),)),
        Match("d2", "data", {"bo": 5, "ada": 5}, NOON),
    )
    assert found.relationships("ada") == [
        Relationship(
            agent_id="ada", other_agent_id="bo", debates=2, wins=1, draws=1, agreements=2, disagreements=1
        ),
        Relationship(agent_id="ada", other_agent_id="cy", debates=1, wins=1),
    ]
    assert found.relationships("bo")[0] == Relationship(
        agent_id="bo", other_agent_id="ada", debates=2, draws=1, losses=1, agreements=2, disagreements=1
    )
    assert found.relationships("dee") == []
