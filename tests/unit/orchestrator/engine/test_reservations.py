"""What a debate spends stays within its budgets, whatever its agents write, cost, and are asked at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.orchestrator.engine import agent_steps
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.spec import Price
from parley.orchestrator.model.tasks import Task, user_part
from parley.orchestrator.peers.agents import Agents, Call
from parley.runtime.clock import SystemClock
from parley.v1 import gateway_pb2
from parley.v1.agent_pb2 import Agent, Usage
from parley.v1.debate_pb2 import DebateLimits, Reply, Work
from parley.v1.event_pb2 import StepFailed
from tests.support.memory_log import MemoryLog
from tests.support.orchestration import agent, make_debate, make_limits, with_fields, with_spec

LETTERS_A_TOKEN = 4


@dataclass(frozen=True)
class Writer:
    """How an agent's model answers: `length` tokens, which it keeps to its bound or not, at a price."""

    length: int
    keeps_bound: bool
    price: Price
    is_priced: bool = True

    def spec(self, number: int) -> Agent:
        asked = agent(f"a{number}", routes=(f"p/m{number}",))
        if self.is_priced:
            asked.input_price_micros, asked.output_price_micros = self.price.read, self.price.written
        return asked


@dataclass
class Models:
    """Models behind a gateway, which cuts an answer off that is twice as long as it may be."""

    writers: dict[str, Writer]
    fails: bool = False
    spent: list[tuple[int, float]] = field(default_factory=list)
    written: int = 0
    longest: dict[str, int] = field(default_factory=dict)
    bounds: list[int] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def generate(self, _call: Call, request: gateway_pb2.GenerateRequest) -> tuple[Reply, bool]:
        writer, bound = self.writers[request.agent.id], request.affordable_output_tokens
        self.bounds.append(bound)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.in_flight -= 1
        read = sum(len(part.text) for part in request.prompt) // LETTERS_A_TOKEN
        wrote = min(writer.length, bound) if writer.keeps_bound and bound else writer.length
        cost = (read * writer.price.read + wrote * writer.price.written) / 1_000_000
        self.spent.append((read + wrote, cost))
        usage = Usage(input_tokens=read, output_tokens=wrote, cost_micros=round(cost), requests=1)
        if self.fails:
            raise StepError("BAD_REQUEST", "the provider said no", usage)
        kept = min(wrote, 2 * bound) if bound else wrote
        self.written += kept
        self.longest[request.agent.id] = max(self.longest.get(request.agent.id, 0), kept)
        return Reply(text="x", usage=usage), False

    async def cancel(self, _call: Call) -> None:
        raise AssertionError


async def spend(
    models: Models,
    limits: DebateLimits,
    waves: Sequence[Sequence[int]],
    prompt: int,
    *,
    is_answer: bool = False,
    ballots: int = 0,
) -> tuple[list[Reply | StepFailed], Reply | StepFailed]:
    """Hold a debate of waves of calls, each of the agents of these numbers, and then the answer of the first agent.

    Before the answer, so many ballots of the first agent read the longest text of each agent.
    """
    agents = tuple(each.spec(number) for number, each in enumerate(models.writers.values()))
    spec = make_debate(1, 1, limits=limits)
    spec = with_spec(spec, agents=agents, judge=with_fields(agents[0], id="judge"))
    models.writers["judge"] = models.writers["a0"]
    journal = Journal(MemoryLog(), SystemClock(), "t", "deb", [])
    await journal.claim("me")
    replies: list[Reply | StepFailed] = []
    writing = asyncio.create_task(journal.run_writer())
    try:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            debate = Debate(spec, journal, cast(Agents, models), cast(Any, None), SystemClock())
            debate.start_run()
            debate.limiter.use_task_group(tasks)
            debate.expect_answer_calls(ballots + 1)
            for number, wave in enumerate(waves):
                asked = [
                    debate.ask(
                        f"wave/{number}/{place}",
                        agents[each],
                        task(prompt, agents[each].id, is_answer=is_answer),
                    )
                    for place, each in enumerate(wave)
                ]
                replies += await asyncio.gather(*asked)
            shown = tuple(user_part("x" * each * LETTERS_A_TOKEN, 1) for each in models.longest.values())
            ballot = Task(Work(activity="vote", agent_id="a0"), (user_part("Vote."), *shown), is_answer=True)
            replies += await asyncio.gather(
                *(debate.ask(f"vote/{each}", agents[0], ballot) for each in range(ballots))
            )
            last = task(prompt + models.written * LETTERS_A_TOKEN, is_answer=True)
            answer = await debate.ask("answer", debate.judge, last)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    return replies, answer


def task(letters: int, agent_id: str = "a0", *, is_answer: bool = False) -> Task:
    parts = (user_part("x" * letters, 1),) if is_answer else (user_part("x" * letters),)
    return Task(Work(activity="proposal", agent_id=agent_id), parts, is_answer=is_answer)


PRICES = st.builds(Price, st.integers(0, 5_000_000), st.integers(0, 50_000_000))
LENGTHS = st.sampled_from([1, 900, 3000, 8000, 30_000]) | st.integers(1, 100_000)
WRITERS = st.builds(Writer, LENGTHS, st.booleans(), PRICES)
WAVES = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=8) | st.just([1] * 8), min_size=1, max_size=4
)


@settings(max_examples=150, deadline=None)
@given(st.lists(WRITERS, min_size=4, max_size=4), WAVES, st.integers(0, 8000), st.integers(0, 100_000))
async def test_a_debate_spends_its_budget_of_tokens_and_at_most_one_call(
    writers: list[Writer], waves: list[list[int]], prompt: int, limit: int
) -> None:
    writers[0] = replace(writers[0], keeps_bound=True)  # it writes the answer, which is asked for in any case
    models = Models({f"a{number}": each for number, each in enumerate(writers)})
    _, answer = await spend(models, make_limits(max_tokens=max(limit, 1)), waves, prompt)
    assert isinstance(answer, Reply)
    spent = [tokens for tokens, _ in models.spent]
    assert sum(spent) <= limit + max(spent)


@settings(max_examples=150, deadline=None)
@given(st.lists(WRITERS, min_size=4, max_size=4), WAVES, st.integers(0, 8000), st.integers(1, 500_000))
async def test_a_debate_spends_its_budget_of_money_and_at_most_one_call(
    writers: list[Writer], waves: list[list[int]], prompt: int, limit: int
) -> None:
    writers[0] = replace(writers[0], keeps_bound=True)
    models = Models({f"a{number}": each for number, each in enumerate(writers)})
    await spend(models, make_limits(max_cost_micros=limit), waves, prompt)
    costs = [cost for _, cost in models.spent]
    assert sum(costs) <= limit + max(costs) + len(costs)  # costs are told in whole millionths


FREE = Price(0, 0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(WRITERS, min_size=4, max_size=4),
    WAVES,
    st.integers(0, 8000),
    st.integers(1, 8),
    st.integers(0, 200_000),
)
async def test_so_it_does_with_a_vote_whose_ballots_read_what_was_written(
    writers: list[Writer], waves: list[list[int]], prompt: int, ballots: int, limit: int
) -> None:
    writers[0] = replace(writers[0], keeps_bound=True)  # it casts the ballots and writes the answer
    models = Models({f"a{number}": each for number, each in enumerate(writers)})
    replies, answer = await spend(
        models, make_limits(max_tokens=max(limit, 1)), waves, prompt, ballots=ballots
    )
    assert isinstance(answer, Reply)
    assert all(isinstance(each, Reply) for each in replies[-ballots:])
    spent = [tokens for tokens, _ in models.spent]
    assert sum(spent) <= max(limit, count_least_tokens(ballots)) + max(spent)


def count_least_tokens(ballots: int) -> int:
    """The tokens that ballots and answer take in any case: 1,000 are written, and 256 bytes of each part of a prompt are read."""
    return (ballots + 1) * (1000 + 5 * 256 // LETTERS_A_TOKEN)


async def test_calls_that_keep_their_bounds_are_made_at_once_and_share_what_is_left() -> None:
    models = Models({"a0": Writer(100, keeps_bound=True, price=FREE)})
    replies, _ = await spend(models, make_limits(max_tokens=40_000), [[0], [0] * 6], 400)
    assert all(isinstance(each, Reply) for each in replies)
    assert models.most_in_flight > 3
    assert all(1000 <= bound <= 8192 for bound in models.bounds)
    assert models.bounds[1] > models.bounds[2], "what is left is less for each of a wave"


async def test_a_wave_that_cannot_be_made_at_once_is_made_in_turn() -> None:
    models = Models({"a0": Writer(10, keeps_bound=True, price=FREE)})
    replies, _ = await spend(models, make_limits(max_tokens=6000), [[0] * 8], 400)
    assert all(isinstance(each, Reply) for each in replies)
    assert models.most_in_flight < 4


async def test_whoever_was_never_asked_is_asked_alone() -> None:
    models = Models({f"a{number}": Writer(100, keeps_bound=True, price=FREE) for number in range(4)})
    await spend(models, make_limits(max_tokens=400_000), [[0, 1, 2, 3]], 400)
    assert models.most_in_flight == 1


async def test_an_answer_within_a_wide_bound_is_no_proof_that_a_narrower_one_is_kept() -> None:
    models = Models({"a0": Writer(8000, keeps_bound=False, price=FREE)})
    await spend(models, make_limits(max_tokens=36_000), [[0] * 6], 0)
    assert models.most_in_flight == 1


async def test_whoever_has_kept_a_bound_that_was_shorter_than_its_answers_is_trusted_with_any() -> None:
    models = Models({"a0": Writer(30_000, keeps_bound=True, price=FREE)})
    await spend(models, make_limits(max_tokens=40_000), [[0] * 8], 0)
    assert min(models.bounds) < max(models.bounds)
    assert models.most_in_flight > 2


async def test_whoever_wrote_more_than_it_may_is_asked_alone_from_then_on() -> None:
    models = Models({"a0": Writer(20_000, keeps_bound=False, price=FREE)})
    await spend(models, make_limits(max_tokens=400_000), [[0] * 4], 400)
    assert models.most_in_flight == 1


async def test_calls_that_make_the_answer_together_wait_for_each_other_and_are_all_made() -> None:
    models = Models({"a0": Writer(20_000, keeps_bound=False, price=FREE)})
    replies, _ = await spend(models, make_limits(max_tokens=10_000), [[0] * 3], 400, is_answer=True)
    assert all(isinstance(each, Reply) for each in replies)
    assert models.most_in_flight == 1


async def test_a_failed_call_counts_and_tells_whether_a_bound_is_kept() -> None:
    models = Models({"a0": Writer(20_000, keeps_bound=False, price=FREE)}, fails=True)
    replies, _ = await spend(models, make_limits(max_tokens=60_000), [[0] * 4], 400)
    reasons = [each.reason for each in replies if isinstance(each, StepFailed)]
    assert reasons == ["BAD_REQUEST", "BAD_REQUEST", "TOKEN_BUDGET", "TOKEN_BUDGET"]


async def test_without_a_budget_nothing_is_estimated_or_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_steps, "estimate", None)  # a call of it would fail
    models = Models({"a0": Writer(100, keeps_bound=True, price=FREE)})
    await spend(models, make_limits(), [[0] * 4], 400)
    assert models.most_in_flight == 4
    assert set(models.bounds) == {0}


@pytest.mark.parametrize("is_priced", [True, False])
async def test_an_unknown_price_is_that_of_the_calls_so_far(*, is_priced: bool) -> None:
    dear = Price(1_000_000, 10_000_000)
    models = Models({"a0": Writer(1000, keeps_bound=True, price=dear, is_priced=is_priced)})
    replies, _ = await spend(models, make_limits(max_cost_micros=60_000), [[0] * 9], 400)
    refused = [each for each in replies if isinstance(each, StepFailed)]
    assert refused
    assert {each.reason for each in refused} == {"COST_BUDGET"}


async def test_a_debate_that_its_budget_ends_leaves_its_ballots_the_proposals_whole() -> None:
    models = Models({f"a{number}": Writer(30_000, keeps_bound=True, price=FREE) for number in range(4)})
    replies, answer = await spend(models, make_limits(max_tokens=60_000), [[0, 1, 2, 3]] * 4, 400, ballots=4)
    assert any(isinstance(each, StepFailed) for each in replies[:-4]), "the budget ended it"
    for each in (*replies[-4:], answer):
        assert isinstance(each, Reply)
        assert not each.prompt_characters_left_out
    assert sum(tokens for tokens, _ in models.spent) <= 60_000


async def test_ballots_and_answer_share_what_a_call_beyond_its_bound_has_left() -> None:
    writers = [Writer(2000, keeps_bound=True, price=FREE), Writer(50_000, keeps_bound=False, price=FREE)]
    models = Models({f"a{number}": each for number, each in enumerate(writers)})
    replies, answer = await spend(models, make_limits(max_tokens=60_000), [[0, 1]], 400, ballots=3)
    assert isinstance(answer, Reply)
    shortened = [each.prompt_characters_left_out for each in replies[-3:] if isinstance(each, Reply)]
    assert all(shortened)
    assert max(shortened) - min(shortened) < 1000
    assert answer.prompt_characters_left_out
