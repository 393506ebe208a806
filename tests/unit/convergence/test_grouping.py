from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from parley.convergence.agreement import Relation, relation
from parley.convergence.grouping import Grouping, Reading, group

SAME, UNSURE, APART = 0.9, 0.5, 0.1


def make_reading(agents: str, told: dict[str, float | None], otherwise: float | None = APART) -> Reading:
    """How agents of one letter each relate; `told` names pairs as `ab`."""
    probabilities = {pair: told.get("".join(pair), otherwise) for pair in combinations(sorted(agents), 2)}
    relations = {pair: relation(each) for pair, each in probabilities.items()}
    return Reading({agent: f"position of {agent}" for agent in sorted(agents)}, relations, probabilities)


def members(grouping: Grouping) -> list[str]:
    return ["".join(each.agent_ids) for each in grouping.groups]


@st.composite
def readings(draw: st.DrawFn) -> Reading:
    agents = "abcdefgh"[: draw(st.integers(1, 8))]
    some = st.one_of(st.none(), st.floats(0, 1, allow_nan=False))
    return make_reading(agents, {"".join(pair): draw(some) for pair in combinations(agents, 2)})


@given(readings())
def test_everyone_is_in_one_group_and_only_with_those_that_are_surely_of_the_same_answer(
    read: Reading,
) -> None:
    grouping = group(read)
    assert sorted("".join(members(grouping))) == sorted(read.positions)
    for each in grouping.groups:
        assert all(read.relations[pair] is Relation.SAME for pair in combinations(each.agent_ids, 2))
    sizes = [len(each.agent_ids) for each in grouping.groups]
    assert sizes == sorted(sizes, reverse=True)


@given(readings())
def test_no_two_groups_are_left_that_could_be_one(read: Reading) -> None:
    for one, other in combinations(group(read).groups, 2):
        between = [read.relations[min(a, b), max(a, b)] for a in one.agent_ids for b in other.agent_ids]
        assert any(each is not Relation.SAME for each in between)


@given(readings())
def test_groups_are_certain_only_where_no_pair_is_unsure(read: Reading) -> None:
    grouping = group(read)
    if grouping.certain:
        together = {pair for each in grouping.groups for pair in combinations(each.agent_ids, 2)}
        assert not read.pairs(Relation.UNSURE)
        assert together == set(read.pairs(Relation.SAME))


def test_one_between_two_that_are_apart_joins_the_one_it_is_more_surely_like() -> None:
    grouping = group(make_reading("abc", {"ab": 0.8, "bc": 0.95, "ac": APART}))
    assert members(grouping) == ["bc", "a"]
    assert not grouping.certain


def test_a_group_is_no_closer_to_another_agent_than_its_member_that_is_least_like_it() -> None:
    grouping = group(make_reading("abcd", {"ab": 0.95, "ac": 0.72, "bc": 0.94, "cd": 0.8}))
    assert members(grouping) == ["ab", "cd"]


def test_an_unsure_pair_is_neither_joined_nor_certain() -> None:
    grouping = group(make_reading("abc", {"ab": SAME, "ac": UNSURE, "bc": SAME}))
    assert members(grouping) == ["ab", "c"]
    assert not grouping.certain


def test_the_one_that_is_most_like_the_others_speaks_for_its_group() -> None:
    grouping = group(make_reading("abc", {"ab": 0.9, "bc": 0.9, "ac": 0.75}))
    assert grouping.groups[0].representative == "b"
    assert grouping.groups[0].position == "position of b"


def test_a_majority_is_more_than_half_of_all_agents() -> None:
    assert group(make_reading("abc", {"ab": SAME})).has_majority
    assert not group(make_reading("abcd", {"ab": SAME, "cd": SAME})).has_majority
    assert group(make_reading("a", {})).has_majority
