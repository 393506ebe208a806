import pytest

from parley.convergence.assessment import Assessment, Thresholds, Verdict
from parley.convergence.embeddings import embeddings
from parley.convergence.rounds import Rounds
from parley.convergence.stands import Stand
from tests.support.hash_embedder import HashEmbedder

QUESTION = "Should the order pipeline use Kafka or RabbitMQ?"
KAFKA = "Use Kafka for the order pipeline."
RABBIT = "Use RabbitMQ for the order pipeline."
KAFKA_TEXT = "Orders have to be replayed after an incident. Three teams read the same stream of orders."
RABBIT_TEXT = "Routing by region is needed more than replay. The team has run queues for ten years already."


async def assess(
    stands: list[Stand],
    previous: list[Stand] | None = None,
    critics: list[bool] | None = None,
    thresholds: Thresholds | None = None,
) -> Assessment:
    async with embeddings(HashEmbedder("fine")) as fine, embeddings(HashEmbedder("fast")) as fast:
        return await Rounds(fine, fast).assess(
            QUESTION, stands, previous or [], critics or [], thresholds or Thresholds()
        )


async def test_agents_of_one_position_have_converged() -> None:
    found = await assess([Stand("a", KAFKA, ""), Stand("b", "Kafka, since orders must be replayed.", "")])
    assert found.verdict is Verdict.CONVERGED
    assert found.agreement == 100
    assert found.text_agreement is None
    assert found.novelty is None
    assert found.stability == {}


async def test_opposed_agents_that_repeat_themselves_are_in_stable_disagreement() -> None:
    stands = [Stand("a", KAFKA, KAFKA_TEXT), Stand("b", RABBIT, RABBIT_TEXT)]
    found = await assess(stands, stands)
    assert found.verdict is Verdict.STABLE_DISAGREEMENT
    assert found.agreement == 0
    assert found.stability == {"a": 100, "b": 100}
    assert found.novelty == 0
    assert [(each.one, each.other) for each in found.contradictions] == [("a", "b")]
    assert "a contradicts b" in found.reason


async def test_opposed_agents_with_new_arguments_go_on() -> None:
    before = [Stand("a", KAFKA, KAFKA_TEXT), Stand("b", RABBIT, RABBIT_TEXT)]
    new = "Auditors demand seven years of history for every payment."
    found = await assess([Stand("a", KAFKA, new), Stand("b", RABBIT, RABBIT_TEXT)], before)
    assert found.verdict is Verdict.CONTINUING
    assert found.novelty == pytest.approx(100 / 3)


async def test_an_agent_that_changes_its_mind_keeps_the_debate_going() -> None:
    before = [Stand("a", KAFKA, ""), Stand("b", RABBIT, ""), Stand("c", KAFKA, "")]
    found = await assess([Stand("a", KAFKA, ""), Stand("b", RABBIT, ""), Stand("c", RABBIT, "")], before)
    assert found.verdict is Verdict.CONTINUING
    assert found.stability == {"a": 100, "b": 100, "c": 0}


async def test_one_dissenter_of_three_is_no_agreement() -> None:
    found = await assess([Stand("a", KAFKA, ""), Stand("b", KAFKA, ""), Stand("c", RABBIT, "")])
    assert found.verdict is Verdict.CONTINUING
    assert found.position_agreement == pytest.approx(100 / 3)


async def test_what_critics_say_themselves_counts_for_half() -> None:
    stands = [Stand("a", KAFKA, ""), Stand("b", KAFKA, "")]
    found = await assess(stands, critics=[True, False])
    assert (found.critic_agreement, found.agreement) == (50, 75)
    assert found.verdict is Verdict.CONTINUING
    assert (await assess(stands, critics=[True, True])).verdict is Verdict.CONVERGED


async def test_the_threshold_of_the_debate_decides() -> None:
    stands = [Stand("a", KAFKA, ""), Stand("b", KAFKA, ""), Stand("c", RABBIT, "")]
    assert (await assess(stands, thresholds=Thresholds(agreement=30))).verdict is Verdict.CONVERGED


async def test_an_agent_that_joined_has_no_stability_and_nothing_is_called_stable() -> None:
    before = [Stand("a", KAFKA, KAFKA_TEXT)]
    found = await assess([Stand("a", KAFKA, KAFKA_TEXT), Stand("b", RABBIT, KAFKA_TEXT)], before)
    assert found.stability == {"a": 100}
    assert found.verdict is Verdict.CONTINUING
    assert found.text_agreement == pytest.approx(100)
