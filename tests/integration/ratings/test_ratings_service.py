"""The ratings service over real gRPC."""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.ratings.__main__ import build
from parley.ratings.settings import RatingsSettings
from parley.runtime.channel import channel
from parley.runtime.errors import ConfigurationError
from parley.runtime.server import start_server
from parley.v1 import ratings_pb2 as pb
from parley.v1.ratings_pb2_grpc import RatingsServiceStub
from tests.support.catching import catch_error
from tests.support.mounts import fill, mount_for_block

ACME = (("parley-tenant", "acme"),)


@asynccontextmanager
async def run_ratings(folder: Path) -> AsyncIterator[RatingsServiceStub]:
    async with (
        build(RatingsSettings(store=f"sqlite:///{folder}")) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        yield RatingsServiceStub(opened)


@pytest.fixture
async def ratings(tmp_path: Path) -> AsyncIterator[RatingsServiceStub]:
    async with run_ratings(tmp_path) as stub:
        yield stub


def outcome(debate_id: str, domain: str = "", **scores: float) -> pb.RecordMatchRequest:
    results = [pb.MatchResult(agent_id=agent_id, score=score) for agent_id, score in scores.items()]
    return pb.RecordMatchRequest(debate_id=debate_id, domain=domain, results=results)


async def weights(stub: RatingsServiceStub, *agent_ids: str, domain: str = "") -> list[float]:
    response = await stub.GetWeights(pb.GetWeightsRequest(agent_ids=agent_ids, domain=domain))
    return [each.weight for each in response.weights]


async def test_agents_without_history_weigh_one(ratings: RatingsServiceStub) -> None:
    response = await ratings.GetWeights(pb.GetWeightsRequest(agent_ids=["bo", "ada"], domain="security"))
    assert [(each.agent_id, each.weight) for each in response.weights] == [("bo", 1.0), ("ada", 1.0)]
    assert response.weights[0].rating.elo == 1500


async def test_a_match_moves_weights_overall_and_in_its_domain(ratings: RatingsServiceStub) -> None:
    response = await ratings.RecordMatch(outcome("d1", "security", ada=9, bo=4))
    assert not response.existed
    assert [(each.agent_id, each.before, each.after) for each in response.changes] == [
        ("ada", 1500, 1516),
        ("bo", 1500, 1484),
    ]
    assert await weights(ratings, "ada", "bo", "cy", domain="security") == pytest.approx([1.032, 0.968, 1.0])
    # No match in this domain: the overall rating stands in.
    assert await weights(ratings, "ada", domain="data") == pytest.approx([1.032])


async def test_a_debate_counts_once(ratings: RatingsServiceStub) -> None:
    first = await ratings.RecordMatch(outcome("d1", ada=9, bo=4))
    again = await ratings.RecordMatch(outcome("d1", bo=4, ada=9))
    assert again.existed
    assert again.changes == first.changes
    error = await catch_error(ratings.RecordMatch(outcome("d1", ada=4, bo=9)))
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "DEBATE_REUSED")
    assert await weights(ratings, "ada") == pytest.approx([1.032])


async def test_ratings_are_listed_best_first_page_by_page_and_outlive_the_process(tmp_path: Path) -> None:
    async with run_ratings(tmp_path) as stub:
        await stub.RecordMatch(outcome("d1", a0=0, a1=1, a2=2, a3=3, a4=0, a5=1, a6=2))
    async with run_ratings(tmp_path) as stub:
        whole = (await stub.ListRatings(pb.ListRatingsRequest())).ratings
        paged: list[pb.Rating] = []
        token = ""
        while True:
            page = await stub.ListRatings(pb.ListRatingsRequest(page_size=2, page_token=token))
            paged += page.ratings
            token = page.next_page_token
            if not token:
                break
    assert [each.agent_id for each in whole] == ["a3", "a2", "a6", "a1", "a5", "a0", "a4"]
    assert paged == list(whole)
    assert (whole[0].wins, whole[0].losses, whole[0].draws, whole[0].matches) == (6, 0, 0, 1)
    assert whole[0].HasField("last_match_at")


async def test_a_tenant_sees_only_its_own_ratings(ratings: RatingsServiceStub) -> None:
    await ratings.RecordMatch(outcome("d1", ada=9, bo=4), metadata=ACME)
    assert not (await ratings.ListRatings(pb.ListRatingsRequest())).ratings
    assert len((await ratings.ListRatings(pb.ListRatingsRequest(), metadata=ACME)).ratings) == 2


async def test_every_bad_field_is_listed_at_once(ratings: RatingsServiceStub) -> None:
    request = pb.RecordMatchRequest(
        domain="x" * 65,
        results=[pb.MatchResult(agent_id="Ada", score=11), pb.MatchResult(agent_id="bo", score=float("nan"))],
    )
    error = await catch_error(ratings.RecordMatch(request))
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in error.violations] == [
        "debate_id",
        "domain",
        "results[0].agent_id",
        "results[0].score",
        "results[1].score",
    ]
    assert (await catch_error(ratings.RecordMatch(outcome("d1", ada=9)))).violations[0].field == "results"
    assert (await catch_error(ratings.GetWeights(pb.GetWeightsRequest()))).violations[0].field == "agent_ids"
    for bad in (pb.ListRatingsRequest(page_token="nonsense"), pb.ListRatingsRequest(page_size=-1)):
        assert (await catch_error(ratings.ListRatings(bad))).code is grpc.StatusCode.INVALID_ARGUMENT
    assert not (await ratings.ListRatings(pb.ListRatingsRequest(page_size=1_000_000))).ratings, "200 are"


async def test_a_store_that_is_none_is_named_with_its_setting() -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_STORE"):
        async with build(RatingsSettings(store="postgres://x")):
            pass


def word(value: int, number: int = 1, *agent_ids: str, debate_id: str = "d1") -> pb.RecordFeedbackRequest:
    return pb.RecordFeedbackRequest(
        debate_id=debate_id, number=number, value=value, agent_ids=agent_ids or ("ada", "bo")
    )


async def test_what_people_said_is_listed_beside_the_ratings(ratings: RatingsServiceStub) -> None:
    await ratings.RecordMatch(outcome("d1", ada=9, bo=4))
    assert not (await ratings.RecordFeedback(word(1, 1))).existed
    assert (await ratings.RecordFeedback(word(1, 1))).existed
    assert not (await ratings.RecordFeedback(word(-1, 2))).existed
    await ratings.RecordFeedback(word(1, 1, "cy", debate_id="d2"))
    listed = (await ratings.ListRatings(pb.ListRatingsRequest())).ratings
    found = [(each.agent_id, each.elo, each.matches, each.approvals, each.disapprovals) for each in listed]
    assert found == [("ada", 1516, 1, 0, 1), ("cy", 1500, 0, 1, 0), ("bo", 1484, 1, 0, 1)]
    assert (await weights(ratings, "cy")) == [1.0]


async def test_bad_feedback_is_refused_whole(ratings: RatingsServiceStub) -> None:
    error = await catch_error(ratings.RecordFeedback(pb.RecordFeedbackRequest(debate_id=" ", value=2)))
    assert {each.field for each in error.violations} == {"debate_id", "number", "value", "agent_ids"}
    await ratings.RecordFeedback(word(1))
    assert (await catch_error(ratings.RecordFeedback(word(-1)))).reason == "FEEDBACK_REUSED"


def make_judged_match(debate_id: str, right: dict[str, bool], **scores: float) -> pb.RecordMatchRequest:
    request = outcome(debate_id, "data", **scores)
    for agent, was_right in right.items():
        request.answers.add(agent_id=agent, right=was_right, confidence=0.8)
    return request


async def test_votes_weigh_by_how_often_an_agent_was_right_or_as_the_caller_says(
    ratings: RatingsServiceStub,
) -> None:
    for number in range(8):
        await ratings.RecordMatch(
            make_judged_match(f"d{number}", {"ada": True, "bo": False}, ada=9, bo=4, cy=4)
        )
    request = pb.GetWeightsRequest(agent_ids=["ada", "bo", "cy"], domain="data")
    ada, bo, cy = (await ratings.GetWeights(request)).weights
    assert ada.weight == pytest.approx(math.log2(32 / 12))
    assert ada.rule == pb.WEIGHT_RULE_ACCURACY
    assert bo.weight == pytest.approx(math.log2(24 / 20))
    assert cy.rule == pb.WEIGHT_RULE_ELO, "nothing of it was judged"
    assert (ada.rating.judged_answers, ada.rating.right_answers) == (8, 8)
    assert ada.rating.brier_score == pytest.approx(0.04)
    assert ada.rating.expected_calibration_error == pytest.approx(0.2)
    assert not cy.rating.HasField("brier_score")
    request.rule = pb.WEIGHT_RULE_ELO
    by_elo = (await ratings.GetWeights(request)).weights
    assert {each.rule for each in by_elo} == {pb.WEIGHT_RULE_ELO}
    assert by_elo[0].weight == pytest.approx(
        (by_elo[0].rating.elo - 1000) / 500 * (0.5 + by_elo[0].rating.calibration)
    )


async def test_where_nothing_of_the_domain_was_judged_a_vote_weighs_by_all_that_was(
    ratings: RatingsServiceStub,
) -> None:
    for number in range(8):
        await ratings.RecordMatch(make_judged_match(f"d{number}", {"ada": True}, ada=9, bo=4))
    await ratings.RecordMatch(outcome("d8", "law", ada=9, bo=4))
    for domain in ("security", "law"):
        (ada,) = (await ratings.GetWeights(pb.GetWeightsRequest(agent_ids=["ada"], domain=domain))).weights
        assert ada.rule == pb.WEIGHT_RULE_ACCURACY, domain
        assert ada.weight == pytest.approx(math.log2(32 / 12)), domain


async def test_what_the_service_is_set_to_weigh_by_is_the_default(tmp_path: Path) -> None:
    settings = RatingsSettings(store=f"sqlite:///{tmp_path}", weight_rule="elo")
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        stub = RatingsServiceStub(opened)
        await stub.RecordMatch(make_judged_match("d1", {"ada": True}, ada=9, bo=4))
        (weight,) = (await stub.GetWeights(pb.GetWeightsRequest(agent_ids=["ada"]))).weights
    assert weight.rule == pb.WEIGHT_RULE_ELO


async def test_a_correction_counts_once_and_shows_in_the_history(ratings: RatingsServiceStub) -> None:
    await ratings.RecordMatch(outcome("d1", ada=9, bo=4))
    await ratings.RecordMatch(outcome("d2", "law", bo=6, cy=5))
    correction = pb.CorrectMatchRequest(debate_id="d1", number=1, void=True, reason="the wrong debate")
    assert not (await ratings.CorrectMatch(correction)).existed
    assert (await ratings.CorrectMatch(correction)).existed
    first, second = (await ratings.ListMatches(pb.ListMatchesRequest())).matches
    assert (first.debate_id, first.void, [each.agent_id for each in first.changes]) == (
        "d2",
        False,
        ["bo", "cy"],
    )
    assert (second.debate_id, second.void, second.correction) == ("d1", True, 1)
    assert (second.correction_reason, len(second.results)) == ("the wrong debate", 0)
    listed = (await ratings.ListRatings(pb.ListRatingsRequest(min_matches=1))).ratings
    assert [each.agent_id for each in listed] == ["bo", "cy"]
    correction.void = False
    correction.results.extend(outcome("d1", ada=1, bo=2).results)
    assert (await catch_error(ratings.CorrectMatch(correction))).reason == "CORRECTION_REUSED"
    correction.debate_id = "unknown"
    assert (await catch_error(ratings.CorrectMatch(correction))).code is grpc.StatusCode.NOT_FOUND


async def test_the_history_is_paged_and_of_an_agent_or_a_domain(ratings: RatingsServiceStub) -> None:
    for number in range(5):
        await ratings.RecordMatch(outcome(f"d{number}", "law" if number % 2 else "data", ada=9, bo=number))
    await ratings.RecordMatch(outcome("d5", "data", cy=9, bo=1))
    seen: list[str] = []
    token = ""
    while True:
        page = await ratings.ListMatches(pb.ListMatchesRequest(agent_id="ada", page_size=2, page_token=token))
        seen += [each.debate_id for each in page.matches]
        await ratings.RecordMatch(outcome(f"late{len(seen)}", "data", ada=9, bo=1))  # moves no page
        token = page.next_page_token
        if not token:
            break
    assert seen == ["d4", "d3", "d2", "d1", "d0"]
    of_law = (await ratings.ListMatches(pb.ListMatchesRequest(domain="law"))).matches
    assert [each.debate_id for each in of_law] == ["d3", "d1"]


async def test_a_team_is_chosen_with_its_reasons(ratings: RatingsServiceStub) -> None:
    await ratings.RecordMatch(outcome("d1", "data", ada=9, bo=4))
    request = pb.SelectTeamRequest(
        debate_id="deb", candidate_agent_ids=["bo", "cy", "ada"], size=2, domain="data", exploration_share=0.5
    )
    found = (await ratings.SelectTeam(request)).candidates
    assert (found[0].agent_id, found[0].chosen, found[0].explored) == ("ada", True, False)
    assert [each.chosen for each in found] == [True, True, False]
    assert found[1].explored
    assert all(each.reason for each in found)
    assert (await ratings.SelectTeam(request)).candidates == found
    request.size, request.exploration_share = 4, 2
    assert {each.field for each in (await catch_error(ratings.SelectTeam(request))).violations} == {
        "size",
        "exploration_share",
    }


async def test_personas_and_relationships_follow_from_matches(ratings: RatingsServiceStub) -> None:
    request = outcome("d1", "data", ada=9, bo=4, cy=5)
    request.phases.add(agent_id="ada", phase="critique", score=7)
    request.encounters.add(agent_id="cy", other_agent_id="ada", agreements=2)
    await ratings.RecordMatch(request)
    assert (await ratings.RecordMatch(request)).existed
    persona = await ratings.GetPersona(pb.GetPersonaRequest(agent_id="ada"))
    assert [(each.domain, each.phase, each.mean_score) for each in persona.strengths] == [
        ("", "critique", 7),
        ("data", "critique", 7),
    ]
    pages: list[pb.Relationship] = []
    token = ""
    while True:
        page = await ratings.ListRelationships(
            pb.ListRelationshipsRequest(agent_id="ada", page_size=1, page_token=token)
        )
        pages += page.relationships
        token = page.next_page_token
        if not token:
            break
    assert [(each.other_agent_id, each.wins, each.agreements) for each in pages] == [
        ("bo", 1, 0),
        ("cy", 1, 2),
    ]
    request.phases[0].score = 8
    assert (await catch_error(ratings.RecordMatch(request))).reason == "DEBATE_REUSED"


async def test_what_is_learned_of_agents_that_did_not_play_is_refused_whole(
    ratings: RatingsServiceStub,
) -> None:
    request = outcome("d1", ada=9, bo=4)
    request.answers.add(agent_id="cy", confidence=2)
    request.phases.add(agent_id="ada", phase=" ", score=11)
    request.encounters.add(agent_id="ada", other_agent_id="ada", agreements=-1)
    assert [each.field for each in (await catch_error(ratings.RecordMatch(request))).violations] == [
        "answers[0].agent_id",
        "answers[0].confidence",
        "phases[0].phase",
        "phases[0].score",
        "encounters[0].other_agent_id",
        "encounters[0].agreements",
    ]
    bad = pb.CorrectMatchRequest(debate_id="d1", void=True, results=request.results)
    assert {each.field for each in (await catch_error(ratings.CorrectMatch(bad))).violations} == {
        "number",
        "reason",
        "results",
    }


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a disk of 1 MB."""
    with mount_for_block(tmp_path, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        yield tmp_path


async def test_a_match_that_a_full_disk_does_not_take_is_recorded_once_when_there_is_room(disk: Path) -> None:
    async with run_ratings(disk) as stub:
        await stub.RecordMatch(outcome("d0", ada=9, bo=4))
        filled = fill(disk)
        full = await _find_first_refused(stub)
        error = await catch_error(stub.RecordMatch(outcome(full, ada=9, bo=4)))
        assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert "is full; free some room and try again" in error.message
        kept = await stub.ListMatches(pb.ListMatchesRequest(page_size=1))
        filled.unlink()
        assert not (await stub.RecordMatch(outcome(full, ada=9, bo=4))).existed
    async with run_ratings(disk) as stub:
        listed = await stub.ListMatches(pb.ListMatchesRequest(page_size=2))
        assert [each.debate_id for each in listed.matches] == [full, kept.matches[0].debate_id]


async def _find_first_refused(stub: RatingsServiceStub) -> str:
    """Record matches until one is refused, as what is left of the last pages is used up; return its debate."""
    for number in range(1, 200):
        try:
            await stub.RecordMatch(outcome(f"d{number}", ada=9, bo=4))
        except grpc.aio.AioRpcError:
            return f"d{number}"
    raise AssertionError("the disk took every match")
