import asyncio
import math

import numpy as np
import pytest

from parley.convergence.agreement import Agreements, Relation, words_key
from parley.convergence.assessment import Assessment, Critic, Round, Thresholds, Verdict
from parley.convergence.assessment import assess as judged
from parley.convergence.embeddings import open_embeddings
from parley.convergence.grouping import Reading
from parley.convergence.rounds import Rounds, Settled
from parley.v1.convergence_pb2 import AgentPosition
from tests.support.hash_embedder import HashEmbedder
from tests.support.word_agreement import WordAgreement

QUESTION = "Should the order pipeline use Kafka or RabbitMQ?"
KAFKA = "Use Kafka for the order pipeline."
RABBIT = "Use RabbitMQ for the order pipeline."
NEITHER = "Use whatever the team knows best."
DECIDED = words_key(KAFKA, NEITHER)
KAFKA_TEXT = "Orders have to be replayed after an incident. Three teams read the same stream of orders."
RABBIT_TEXT = "Routing by region is needed more than replay. The team has run queues for ten years already."


async def assess(
    stands: list[AgentPosition],
    previous: list[AgentPosition] | None = None,
    critics: list[Critic] | None = None,
    thresholds: Thresholds | None = None,
    settled: Settled | None = None,
) -> Assessment:
    async with open_embeddings(HashEmbedder("fast")) as fast:
        rounds = Rounds(fast, Agreements(WordAgreement(), cache=100))
        return await rounds.assess(
            QUESTION, stands, previous or [], critics or [], thresholds or Thresholds(), settled
        )


def stands(*positions: str) -> list[AgentPosition]:
    return [
        AgentPosition(agent_id=agent, position=position, text="")
        for agent, position in zip("abcde", positions, strict=False)
    ]


async def test_agents_of_one_position_have_converged() -> None:
    found = await assess(stands(KAFKA, "Kafka, since orders must be replayed."))
    assert found.verdict is Verdict.CONVERGED
    assert found.agreement == 100
    assert found.text_agreement is None
    assert found.novelty is None
    assert found.kept == {}


async def test_opposed_agents_that_repeat_themselves_are_in_stable_disagreement() -> None:
    held = [
        AgentPosition(agent_id="a", position=KAFKA, text=KAFKA_TEXT),
        AgentPosition(agent_id="b", position=RABBIT, text=RABBIT_TEXT),
    ]
    found = await assess(held, held)
    assert found.verdict is Verdict.STABLE_DISAGREEMENT
    assert found.agreement == 0
    assert found.kept == {"a": True, "b": True}
    assert found.novelty == 0
    assert "a and b are apart" in found.reason


async def test_opposed_agents_with_new_arguments_refine() -> None:
    before = [
        AgentPosition(agent_id="a", position=KAFKA, text=KAFKA_TEXT),
        AgentPosition(agent_id="b", position=RABBIT, text=RABBIT_TEXT),
    ]
    new = "Auditors demand seven years of history for every payment."
    found = await assess(
        [
            AgentPosition(agent_id="a", position=KAFKA, text=new),
            AgentPosition(agent_id="b", position=RABBIT, text=RABBIT_TEXT),
        ],
        before,
    )
    assert found.verdict is Verdict.REFINING
    assert found.novelty == pytest.approx(100 / 3)


@pytest.mark.parametrize(("likeness", "novelty"), [(0.69, 100), (0.71, 0)])
def test_a_sentence_is_new_unless_it_is_much_like_one_of_before(likeness: float, novelty: float) -> None:
    said, again = np.array([1.0, 0.0]), np.array([likeness, math.sqrt(1 - likeness**2)])
    pair = ("a", "b")
    two = Reading({"a": KAFKA, "b": RABBIT}, {pair: Relation.APART}, {pair: 0.1})
    found = judged(Round(two, (), (again,)), Round(two, (), (said,)), {}, [], Thresholds())
    assert found.novelty == novelty


async def test_an_agent_that_leaves_the_others_lets_them_diverge() -> None:
    found = await assess(stands(KAFKA, RABBIT, RABBIT), stands(KAFKA, KAFKA, KAFKA))
    assert found.verdict is Verdict.DIVERGING
    assert found.kept == {"a": True, "b": False, "c": False}


async def test_an_agent_that_changes_sides_keeps_the_debate_going() -> None:
    found = await assess(stands(KAFKA, RABBIT, RABBIT), stands(KAFKA, RABBIT, KAFKA))
    assert found.verdict is Verdict.REFINING
    assert found.kept == {"a": True, "b": True, "c": False}


async def test_the_reason_names_a_pair_of_agents_that_are_apart() -> None:
    found = await assess(stands(KAFKA, RABBIT, KAFKA))
    assert "a and b are apart" in found.reason  # and not a and c, who agree


async def test_the_first_round_without_agreement_goes_on() -> None:
    assert (await assess(stands(KAFKA, RABBIT))).verdict is Verdict.CONTINUING


async def test_agreement_that_depends_on_an_unsure_pair_cannot_be_told() -> None:
    found = await assess(stands(KAFKA, NEITHER))
    assert found.verdict is Verdict.UNDETERMINED
    assert found.agreement == 0
    assert "pairs that cannot be told 1" in found.reason


async def test_an_unsure_pair_changes_nothing_where_others_are_apart_anyway() -> None:
    assert (await assess(stands(KAFKA, RABBIT, NEITHER))).verdict is Verdict.CONTINUING


async def test_a_pair_that_somebody_settled_counts_as_settled() -> None:
    agreed = await assess(stands(KAFKA, NEITHER), settled={DECIDED: True})
    assert agreed.verdict is Verdict.CONVERGED
    parted = await assess(stands(KAFKA, NEITHER), settled={DECIDED: False})
    assert parted.verdict is Verdict.CONTINUING


async def test_whether_opposed_agents_still_move_cannot_be_told_until_it_is_settled() -> None:
    before = [
        AgentPosition(agent_id="a", position=KAFKA, text=KAFKA_TEXT),
        AgentPosition(agent_id="b", position=NEITHER, text=RABBIT_TEXT),
    ]
    now = [before[0], AgentPosition(agent_id="b", position=RABBIT, text=RABBIT_TEXT)]
    found = await assess(now, before)
    assert (found.verdict, found.kept) == (Verdict.UNDETERMINED, {"a": True, "b": None})
    for same, verdict in ((True, Verdict.STABLE_DISAGREEMENT), (False, Verdict.CONTINUING)):
        assert (await assess(now, before, settled={words_key(NEITHER, RABBIT): same})).verdict is verdict


async def test_what_the_model_is_sure_of_cannot_be_settled_otherwise() -> None:
    assert (await assess(stands(KAFKA, RABBIT), settled={words_key(KAFKA, RABBIT): True})).agreement == 0


async def test_agents_without_a_position_have_not_agreed_however_alike_their_texts() -> None:
    found = await assess(
        [
            AgentPosition(agent_id="a", position="", text=KAFKA_TEXT),
            AgentPosition(agent_id="b", position="", text=KAFKA_TEXT),
        ]
    )
    assert found.verdict is Verdict.UNDETERMINED
    assert found.text_agreement == pytest.approx(100)


async def test_one_dissenter_of_three_is_no_agreement() -> None:
    found = await assess(stands(KAFKA, KAFKA, RABBIT))
    assert found.verdict is Verdict.CONTINUING
    assert found.position_agreement == pytest.approx(100 / 3)


async def test_what_critics_say_themselves_counts_for_half() -> None:
    found = await assess(stands(KAFKA, KAFKA), critics=[Critic("a", "b", True), Critic("b", "a", False)])
    assert (found.critic_agreement, found.agreement) == (50, 75)
    assert found.verdict is Verdict.CONTINUING
    both = [Critic("a", "b", True), Critic("b", "a", True)]
    assert (await assess(stands(KAFKA, KAFKA), critics=both)).verdict is Verdict.CONVERGED


async def test_what_a_critic_said_before_either_changed_its_position_counts_no_more() -> None:
    before, now = stands(KAFKA, RABBIT, KAFKA), stands(KAFKA, KAFKA, KAFKA)
    apart = [Critic("a", "b", False), Critic("b", "a", False)]
    found = await assess(now, before, critics=apart)
    assert (found.critic_agreement, found.verdict) == (None, Verdict.CONVERGED)
    found = await assess(now, before, critics=[*apart, Critic("a", "c", False)])
    assert (found.critic_agreement, found.verdict) == (0, Verdict.REFINING)


async def test_the_threshold_of_the_debate_decides() -> None:
    found = await assess(stands(KAFKA, KAFKA, RABBIT), thresholds=Thresholds(agreement=30))
    assert found.verdict is Verdict.CONVERGED


async def test_an_agent_that_joined_has_no_stability_and_nothing_is_called_stable() -> None:
    before = [AgentPosition(agent_id="a", position=KAFKA, text=KAFKA_TEXT)]
    found = await assess(
        [
            AgentPosition(agent_id="a", position=KAFKA, text=KAFKA_TEXT),
            AgentPosition(agent_id="b", position=RABBIT, text=KAFKA_TEXT),
        ],
        before,
    )
    assert found.kept == {"a": True}
    assert found.verdict is Verdict.CONTINUING
    assert found.text_agreement == pytest.approx(100)


async def test_all_pairs_of_an_assessment_are_read_at_once() -> None:
    class Together(WordAgreement):
        begun, all_begun = 0, asyncio.Event()

        async def estimate_probability(self, one: str, other: str) -> float | None:
            self.begun += 1
            if self.begun == 9:
                self.all_begun.set()
            await self.all_begun.wait()
            return await super().estimate_probability(one, other)

    async with open_embeddings(HashEmbedder("fast")) as fast, asyncio.timeout(10):
        await Rounds(fast, Agreements(Together(), cache=0)).assess(
            QUESTION,
            stands(KAFKA, "Redis.", "Files."),
            stands("Pulsar.", "MQTT.", "Paper."),
            [],
            Thresholds(),
        )
