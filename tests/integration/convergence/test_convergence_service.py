"""The convergence service over real gRPC, with its real models."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc
import numpy as np
import pytest
import pytest_asyncio

from parley.convergence import models
from parley.convergence.__main__ import build
from parley.convergence.held_model import IDLE_SECONDS
from parley.convergence.settings import ConvergenceSettings
from parley.convergence.vectors import Vector
from parley.runtime.channel import channel
from parley.runtime.errors import from_rpc_error
from parley.runtime.server import start_server
from parley.v1 import convergence_pb2 as pb
from parley.v1.convergence_pb2_grpc import ConvergenceServiceStub
from tests.support.catching import catch_error
from tests.support.loop_holds import longest_hold_allowed, loop_holds
from tests.support.manual_clock import ManualClock
from tests.support.model_server import ModelServer
from tests.support.small_encoder import write_encoder, write_head

QUESTION = "Should we split our monolith into microservices?"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def convergence() -> AsyncIterator[ConvergenceServiceStub]:
    """One service for all tests here: it takes a second to load its models."""
    async with (
        build(ConvergenceSettings()) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        yield ConvergenceServiceStub(opened)


def requests(
    *texts: str, model: pb.EmbeddingModel.ValueType = pb.EMBEDDING_MODEL_FINE
) -> AsyncIterator[pb.EmbedRequest]:
    async def stream() -> AsyncIterator[pb.EmbedRequest]:
        for text in texts:
            yield pb.EmbedRequest(text=text, model=model)

    return stream()


async def test_a_stream_of_texts_comes_back_as_vectors_in_its_order(
    convergence: ConvergenceServiceStub,
) -> None:
    texts = [f"text number {number % 50}" for number in range(100)]
    answers = [each async for each in convergence.Embed(requests(*texts))]
    assert len(answers) == 100
    assert {each.model for each in answers} == {"all-minilm-l6-v2-int8"}
    assert [len(each.vector) for each in answers] == [384] * 100
    assert all(np.array_equal(answers[at].vector, answers[at + 50].vector) for at in range(50))
    assert len({tuple(each.vector) for each in answers}) == 50


async def test_an_answer_comes_before_the_next_request_is_sent(convergence: ConvergenceServiceStub) -> None:
    stream = convergence.Embed()
    async with asyncio.timeout(30):
        for text in ("one", "two"):
            await stream.write(pb.EmbedRequest(text=text, model=pb.EMBEDDING_MODEL_FAST))
            answer = await stream.read()
            assert isinstance(answer, pb.EmbedResponse)
            assert (answer.model, len(answer.vector)) == ("wordllama-l2-supercat-256", 256)
        await stream.done_writing()
        assert await stream.read() == grpc.aio.EOF


async def test_a_blank_text_ends_the_stream_with_the_bad_field(convergence: ConvergenceServiceStub) -> None:
    stream = convergence.Embed(requests("fine", " "))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        [each async for each in stream]
    error = from_rpc_error(raised.value)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in error.violations] == ["text"]


async def test_a_client_that_hangs_up_leaves_the_service_well(convergence: ConvergenceServiceStub) -> None:
    stream = convergence.Embed(requests(*(f"text {number} " * 200 for number in range(50))))
    await stream.read()
    stream.cancel()
    assert len([each async for each in convergence.Embed(requests("another"))]) == 1


async def test_no_round_of_long_texts_holds_the_loop(convergence: ConvergenceServiceStub) -> None:
    longest: list[list[str]] = []
    for number in range(3):
        stands = [
            pb.AgentPosition(
                agent_id=f"agent-{agent}", text=f"Agent {agent} says this and that at {number}. " * 2_500
            )
            for agent in range(12)
        ]
        with loop_holds() as holds:
            await convergence.Assess(pb.AssessRequest(question=QUESTION, positions=stands), timeout=60)
        if holds.longest < longest_hold_allowed():
            return
        longest.append(holds.told()[:3])
    raise AssertionError(f"the loop was held for too long: {longest}")


async def test_first_drafts_are_grouped_by_the_position_they_take(
    convergence: ConvergenceServiceStub,
) -> None:
    response = await convergence.GroupPositions(
        pb.GroupPositionsRequest(
            question=QUESTION,
            positions=[
                pb.AgentPosition(agent_id="ada", position="Keep the monolith."),
                pb.AgentPosition(agent_id="bo", position="We should split the monolith into microservices."),
                pb.AgentPosition(agent_id="cy", position="**keep** the  monolith"),
            ],
            settled=[
                pb.SettledPair(
                    position="We should split the monolith into microservices.",
                    other_position="Keep the monolith.",
                )
            ],
        )
    )
    assert [list(each.agent_ids) for each in response.groups] == [["ada", "cy"], ["bo"]]
    assert response.majority
    assert [(each.agent_id, each.other_agent_id) for each in response.contradictions] == [
        ("ada", "bo"),
        ("bo", "cy"),
    ]
    assert response.groups[1].position == "We should split the monolith into microservices."
    assert response.certain
    assert not response.unsure


async def test_positions_of_other_words_are_unsure_and_so_is_who_states_none(
    convergence: ConvergenceServiceStub,
) -> None:
    response = await convergence.GroupPositions(
        pb.GroupPositionsRequest(
            question=QUESTION,
            positions=[
                pb.AgentPosition(agent_id="ada", position="We should keep the monolith."),
                pb.AgentPosition(agent_id="bo", text="We should keep the monolith."),
                pb.AgentPosition(agent_id="cy", position="Монолит нужно сохранить."),
            ],
        )
    )
    assert [list(each.agent_ids) for each in response.groups] == [["ada"], ["bo"], ["cy"]]
    assert not response.certain
    assert [
        (each.agent_id, each.other_agent_id, each.HasField("same_probability")) for each in response.unsure
    ] == [
        ("ada", "bo", False),
        ("ada", "cy", False),
        ("bo", "cy", False),
    ]


async def test_what_somebody_settled_decides_what_the_model_is_unsure_of(
    convergence: ConvergenceServiceStub,
) -> None:
    request = pb.AssessRequest(
        question=QUESTION,
        positions=[
            pb.AgentPosition(agent_id="ada", position="Der Monolith soll bleiben."),
            pb.AgentPosition(agent_id="bo", position="Wir sollen ihn nicht aufteilen."),
        ],
    )
    assert (await convergence.Assess(request)).verdict == pb.CONVERGENCE_VERDICT_UNDETERMINED
    request.settled.add(
        position=request.positions[1].position, other_position=request.positions[0].position, same=True
    )
    response = await convergence.Assess(request)
    assert (response.verdict, response.agreement_percent) == (pb.CONVERGENCE_VERDICT_CONVERGED, 100)
    assert not response.unsure


async def test_what_somebody_settled_decides_how_unsure_positions_group(
    convergence: ConvergenceServiceStub,
) -> None:
    request = pb.GroupPositionsRequest(
        question=QUESTION,
        positions=[
            pb.AgentPosition(agent_id="ada", position="Der Monolith soll bleiben."),
            pb.AgentPosition(agent_id="bo", position="Wir sollen ihn nicht aufteilen."),
        ],
    )
    assert not (await convergence.GroupPositions(request)).certain
    request.settled.add(
        position=request.positions[1].position, other_position=request.positions[0].position, same=True
    )
    response = await convergence.GroupPositions(request)
    assert (response.certain, [list(each.agent_ids) for each in response.groups]) == (True, [["ada", "bo"]])
    request.settled.add(
        position="Der Monolith soll bleiben.", other_position="Wir sollen ihn nicht aufteilen."
    )
    assert not (await convergence.GroupPositions(request)).certain, "both is said of this pair"


async def test_many_pairs_of_positions_are_compared_by_one_call(convergence: ConvergenceServiceStub) -> None:
    request = pb.ComparePositionsRequest(
        pairs=[
            pb.PositionPair(position="Keep the monolith.", other_position="**keep** the  monolith"),
            pb.PositionPair(position="Keep the monolith.", other_position="Split it."),
            pb.PositionPair(position="Keep the monolith."),
        ]
    )
    response = await convergence.ComparePositions(request)
    assert [each.same if each.HasField("same") else None for each in response.pairs] == [True, None, None]


async def test_pairs_that_are_too_many_or_too_long_are_refused(convergence: ConvergenceServiceStub) -> None:
    for pairs, field in (
        ([], "pairs"),
        ([pb.PositionPair()] * 513, "pairs"),
        ([pb.PositionPair(other_position="x" * 2_001)], "pairs[0].other_position"),
    ):
        error = await catch_error(convergence.ComparePositions(pb.ComparePositionsRequest(pairs=pairs)))
        assert [each.field for each in error.violations] == [field]


async def test_opposed_agents_that_repeat_themselves_are_not_called_converged(
    convergence: ConvergenceServiceStub,
) -> None:
    stands = [
        pb.AgentPosition(
            agent_id="ada",
            position="We should keep the monolith and not split it into microservices.",
            text="A small team cannot run twelve services well.",
        ),
        pb.AgentPosition(
            agent_id="bo",
            position="We should split the monolith into microservices.",
            text="Teams block each other in one code base today.",
        ),
    ]
    settled = [pb.SettledPair(position=stands[0].position, other_position=stands[1].position)]
    response = await convergence.Assess(
        pb.AssessRequest(question=QUESTION, positions=stands, previous=stands, settled=settled)
    )
    assert response.verdict == pb.CONVERGENCE_VERDICT_STABLE_DISAGREEMENT
    assert response.agreement_percent == 0
    assert response.HasField("text_agreement_percent")
    assert not response.HasField("critic_agreement_percent")
    assert [(each.agent_id, each.kept) for each in response.stability] == [("ada", True), ("bo", True)]
    assert response.novelty_percent == 0


async def test_agents_that_agree_have_converged_and_critics_have_a_say(
    convergence: ConvergenceServiceStub,
) -> None:
    request = pb.AssessRequest(
        question=QUESTION,
        positions=[
            pb.AgentPosition(agent_id="ada", position="Keep the monolith."),
            pb.AgentPosition(agent_id="bo", position="keep the monolith"),
        ],
    )
    response = await convergence.Assess(request)
    assert response.verdict == pb.CONVERGENCE_VERDICT_CONVERGED
    assert not response.HasField("novelty_percent")
    request.critics.add(critic_agent_id="ada", target_agent_id="bo", agrees=False)
    response = await convergence.Assess(request)
    assert response.verdict == pb.CONVERGENCE_VERDICT_CONTINUING
    assert (response.critic_agreement_percent, response.agreement_percent) == (0, 50)


async def test_every_bad_field_is_listed_at_once(convergence: ConvergenceServiceStub) -> None:
    error = await catch_error(
        convergence.Assess(
            pb.AssessRequest(
                question=" ",
                positions=[pb.AgentPosition(agent_id="ada", position="x"), pb.AgentPosition(agent_id="ada")],
                critics=[pb.CriticVerdict(critic_agent_id="ada")],
                settled=[pb.SettledPair(position="x", other_position="y", same=True)],
                agreement_threshold_percent=101,
            )
        )
    )
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in error.violations] == [
        "question",
        "positions[1].agent_id",
        "positions[1]",
        "critics[0].target_agent_id",
        "settled[0]",
        "agreement_threshold_percent",
    ]
    assert (await catch_error(convergence.GroupPositions(pb.GroupPositionsRequest(question="x")))).violations


async def test_any_compatible_endpoint_can_embed_and_its_absence_is_said() -> None:
    async with ModelServer() as endpoint:
        settings = ConvergenceSettings(
            embedding_fine="endpoint", embedding_base_url=endpoint.base_url, embedding_model="some-model"
        )
        async with (
            build(settings) as service,
            start_server([service]) as server,
            channel(server.address) as opened,
        ):
            stub = ConvergenceServiceStub(opened)
            (answer,) = [each async for each in stub.Embed(requests("a text"))]
            assert answer.model == "some-model"
            assert float(np.linalg.norm(answer.vector)) == pytest.approx(1.0, abs=1e-5)
    settings = ConvergenceSettings(embedding_fine="endpoint", embedding_base_url="http://127.0.0.1:9/v1")
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            [each async for each in ConvergenceServiceStub(opened).Embed(requests("a text"))]
    error = from_rpc_error(raised.value)
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "EMBEDDINGS_UNAVAILABLE")


async def test_models_are_loaded_when_they_are_first_used_and_again_after_they_were_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[str] = []

    class Words:
        name = "words"

        def embed_all(self, texts: Sequence[str]) -> list[Vector]:
            return [np.array([float(len(each)), 0.0], np.float32) for each in texts]

    def load(name: str) -> Words:
        loads.append(name)
        return Words()

    monkeypatch.setattr(models, "load_local_model", load)
    clock = ManualClock()
    async with (
        build(ConvergenceSettings(embedding_cache=0), late=True, clock=clock) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        stub = ConvergenceServiceStub(opened)
        counts = []
        for idle in (0, IDLE_SECONDS - 1, IDLE_SECONDS + 1):
            await clock.sleeping()
            clock.advance(idle)
            await clock.sleeping()
            [each async for each in stub.Embed(requests("a text", "another"))]
            counts.append(len(loads))
    assert (counts, set(loads)) == ([1, 1, 2], {"minilm"}), "the fast model was not asked for"


async def test_an_encoder_that_the_settings_name_says_how_probable_the_same_answer_is(tmp_path: Path) -> None:
    files = write_encoder(tmp_path)
    settings = ConvergenceSettings(
        agreement_encoder=files.model,
        agreement_encoder_sha256=files.sha256,
        agreement_tokenizer=files.tokenizer,
        agreement_head=write_head(tmp_path, files),
    )
    positions = [
        pb.AgentPosition(agent_id="ada", position="keep the monolith"),
        pb.AgentPosition(agent_id="bo", position="split it into services"),
    ]
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        request = pb.GroupPositionsRequest(question=QUESTION, positions=positions)
        found = await ConvergenceServiceStub(opened).GroupPositions(request)
    assert found.contradictions or all(each.HasField("same_probability") for each in found.unsure)


async def test_a_head_for_support_that_the_settings_name_finds_what_supports_claims(tmp_path: Path) -> None:
    files = write_encoder(tmp_path)
    settings = ConvergenceSettings(
        agreement_encoder=files.model,
        agreement_encoder_sha256=files.sha256,
        agreement_tokenizer=files.tokenizer,
        agreement_head=write_head(tmp_path, files),
        support_head=write_head(tmp_path, files, "support"),
    )
    request = pb.FindSupportRequest(
        claims=["keep the monolith", "用Kafka。"],
        texts=["", "Split it into the services. Keep the monolith."],
    )
    async with (
        build(settings) as service,
        start_server([service]) as server,
        channel(server.address) as opened,
    ):
        known, foreign = (await ConvergenceServiceStub(opened).FindSupport(request)).claims
    assert set(known.texts) == ({1} if known.probability >= 0.5 else set())
    assert 0 < known.probability < 1
    assert not foreign.HasField("probability")


async def test_without_a_head_for_support_it_is_refused(convergence: ConvergenceServiceStub) -> None:
    error = await catch_error(
        convergence.FindSupport(pb.FindSupportRequest(claims=["It is wet."], texts=["Water is wet."]))
    )
    assert (error.code, error.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NO_SUPPORT_MODEL")


async def test_every_bad_field_of_a_search_for_support_is_named(convergence: ConvergenceServiceStub) -> None:
    error = await catch_error(
        convergence.FindSupport(pb.FindSupportRequest(claims=[" "] * 13, texts=["a" * 100_001]))
    )
    named = [each.field for each in error.violations]
    assert {"claims", "claims[0]", "texts[0]"} <= set(named)


async def test_a_search_for_support_takes_up_to_a_hundred_texts(convergence: ConvergenceServiceStub) -> None:
    reasons = []
    for count in (100, 101):
        error = await catch_error(
            convergence.FindSupport(pb.FindSupportRequest(claims=["It is wet."], texts=["Water."] * count))
        )
        reasons.append((error.reason, [each.field for each in error.violations]))
    assert reasons[0] == ("NO_SUPPORT_MODEL", []), "it was looked at no further"
    assert reasons[1][1] == ["texts"]
