"""What stands out in a debate is found by rules, once a debate wherever its process stops, and goes with the debate."""

from dataclasses import dataclass

import pytest

from parley.memory.debate import search_text
from parley.memory.embedding import Embedding, hold_embeddings
from parley.memory.moments import MOMENTS, Moments
from parley.memory.retention import DAY, Retention, end_effect
from parley.memory.stored_vectors import to_vector
from parley.memory.writing import write_together
from parley.moment_rules import find_moments
from parley.storage.ports import Documents
from parley.v1.effect_pb2 import DECISION_RELATION_CONFIRMS, DECISION_RELATION_REVERSES
from parley.v1.memory_pb2 import (
    MOMENT_KIND_LONE_DISSENTER_WON,
    MOMENT_KIND_REVERSAL,
    MOMENT_KIND_UNANIMOUS_FLIP,
    MOMENT_KIND_UNSPECIFIED,
    FinalStand,
    Moment,
    PastDebate,
    RecordDebateRequest,
)
from tests.support.commits import count_commits
from tests.support.stopping_stores import StoppedError, StoppingDocuments, Writes
from tests.unit.memory.reads import note_reads

KAFKA, RABBIT, WAIT = 1, 2, 3
WORDS = {KAFKA: "Use Kafka.", RABBIT: "Use\n RabbitMQ.", WAIT: "Wait."}


def stand(agent: str, first: int, last: int = KAFKA) -> FinalStand:
    """An agent's course from one position to another; Kafka is decided for. A position 0 is not known."""
    return FinalStand(
        agent_id=agent.lower(),
        agent_name=agent,
        text=WORDS.get(last, "Something."),
        for_decision=last == KAFKA if last else None,
        first_text=WORDS.get(first, "Something."),
        first_for_decision=first == KAFKA if first else None,
        first_position=first,
    )


def record(*stands: FinalStand, debate_id: str = "deb-1", at: int = 1000) -> RecordDebateRequest:
    debate = PastDebate(debate_id=debate_id, question="Which?", conclusion="Kafka.", domain="general")
    debate.concluded_at.FromSeconds(at)
    return RecordDebateRequest(debate=debate, stands=stands)


def make_reversal(
    debate_id: str, at: int = 1000, *, reasons: tuple[str, ...] = ("It grew.",)
) -> RecordDebateRequest:
    found = record(stand("Ada", KAFKA), stand("Bo", RABBIT, RABBIT), debate_id=debate_id, at=at)
    for number, reason in enumerate(reasons):
        related = found.debate.related.add(debate_id=f"old-{number}", decision="Use RabbitMQ.", reason=reason)
        related.relation = DECISION_RELATION_REVERSES
        related.decided_at.FromJsonString("2026-03-03T23:59:00Z")
    return found


LONE = (stand("Bo", RABBIT), stand("Ada", KAFKA), stand("Cy", RABBIT, RABBIT))
FLIP = (stand("Bo", RABBIT), stand("Ada", RABBIT))


def test_a_lone_dissenter_who_won_is_named_with_what_it_and_the_others_stood_for() -> None:
    (found,) = find_moments(record(*LONE))
    assert (found.kind, list(found.agent_ids), found.debate_id) == (
        MOMENT_KIND_LONE_DISSENTER_WON,
        ["ada"],
        "deb-1",
    )
    assert found.concluded_at.seconds == 1000
    assert found.text == (
        "At first Ada alone stood for “Use Kafka”, which was decided for; 2 of 3 agents stood for “Use RabbitMQ”."
    )


@pytest.mark.parametrize(
    "stands",
    [
        (stand("Ada", KAFKA), stand("Bo", 0), stand("Cy", 0)),
        (stand("Ada", KAFKA), stand("Bo", RABBIT)),
        (stand("Ada", KAFKA), stand("Bo", KAFKA), stand("Cy", RABBIT)),
        (stand("Ada", KAFKA), stand("Bo", RABBIT), stand("Cy", WAIT)),
        (stand("Ada", KAFKA), stand("Bo", RABBIT), stand("Cy", RABBIT), stand("Di", WAIT)),
        (stand("Ada", RABBIT), stand("Bo", RABBIT), stand("Cy", WAIT)),
        (stand("Ada", KAFKA), stand("Bo", RABBIT), stand("Cy", 0)),
        (stand("Ada", 0), stand("Bo", 0), stand("Cy", 0)),
    ],
    ids=[
        "one draft known",
        "one of two",
        "two for it",
        "all differ",
        "no majority",
        "none for it",
        "two drafts known",
        "not known",
    ],
)
def test_who_is_not_alone_against_most_of_three_or_did_not_win_is_no_lone_dissenter(
    stands: tuple[FinalStand, ...],
) -> None:
    assert find_moments(record(*stands)) == []


def test_a_unanimous_flip_names_all_and_both_positions() -> None:
    (found,) = find_moments(record(*FLIP))
    assert (found.kind, list(found.agent_ids)) == (MOMENT_KIND_UNANIMOUS_FLIP, ["ada", "bo"])
    assert found.text == "At first all 2 agents stood for “Use RabbitMQ”, and in the end all for “Use Kafka”."


@pytest.mark.parametrize(
    "stands",
    [
        (stand("Ada", RABBIT),),
        (stand("Ada", RABBIT), stand("Bo", WAIT)),
        (stand("Ada", RABBIT), stand("Bo", RABBIT, RABBIT)),
        (stand("Ada", RABBIT), stand("Bo", RABBIT, 0)),
        (stand("Ada", RABBIT), stand("Bo", 0)),
        (stand("Ada", KAFKA), stand("Bo", KAFKA)),
        (),
    ],
    ids=["one agent", "two at first", "one stays", "end not known", "first not known", "none moves", "none"],
)
def test_without_all_on_one_position_at_first_and_on_another_in_the_end_there_is_no_flip(
    stands: tuple[FinalStand, ...],
) -> None:
    assert find_moments(record(*stands)) == []


def test_a_reversal_names_the_old_decision_and_who_stands_for_the_new_one() -> None:
    request = make_reversal("deb-2", reasons=("It grew.", ""))
    request.debate.related.add(debate_id="old-9", decision="Wait.", relation=DECISION_RELATION_CONFIRMS)
    found = find_moments(request)
    assert [(each.kind, each.earlier_debate_id, each.text) for each in found] == [
        (
            MOMENT_KIND_REVERSAL,
            "old-0",
            "The decision of 2026-03-03, “Use RabbitMQ”, was reversed: “It grew”.",
        ),
        (MOMENT_KIND_REVERSAL, "old-1", "The decision of 2026-03-03, “Use RabbitMQ”, was reversed."),
    ]
    assert list(found[0].agent_ids) == ["ada"]


def test_quotations_and_names_are_bounded() -> None:
    stands = record(*LONE).stands
    for each in stands:
        each.first_text, each.agent_name = "é" * 4000, "a" * 4000
    (found,) = find_moments(record(*stands))
    assert len(found.text) < 2 * 160 + 64 + 100


@dataclass(frozen=True)
class KeptMoments:
    documents: Documents

    @property
    def moments(self) -> Moments:
        return Moments(self.documents)

    def stopping(self, writes: Writes) -> Moments:
        return Moments(StoppingDocuments(self.documents, writes))

    async def listed(self, tenant: str = "acme") -> list[Moment]:
        found, _ = await self.moments.list_page(tenant, MOMENT_KIND_UNSPECIFIED, "", 200)
        return found

    async def earlier(self) -> list[str]:
        return [each.earlier_debate_id for each in await self.listed()]


@pytest.fixture
async def kept(documents: Documents) -> KeptMoments:
    await documents.prepare(MOMENTS)
    return KeptMoments(documents)


async def test_moments_are_listed_to_their_tenant_the_latest_debate_first_and_by_kind(
    kept: KeptMoments,
) -> None:
    await kept.moments.apply("acme", record(*FLIP, debate_id="deb-1", at=3000), write_together)
    await kept.moments.apply("acme", make_reversal("deb-2", 1000), write_together)
    await kept.moments.apply("acme", record(*LONE, debate_id="deb-3", at=2000), write_together)
    assert [each.debate_id for each in await kept.listed()] == ["deb-1", "deb-3", "deb-2"]
    found, more = await kept.moments.list_page("acme", MOMENT_KIND_LONE_DISSENTER_WON, "", 5)
    assert ([each.debate_id for each in found], more) == (["deb-3"], "")
    assert await kept.listed("other") == []


async def test_pages_show_each_moment_once_also_those_of_one_debate_and_instant(kept: KeptMoments) -> None:
    for number in range(3):
        await kept.moments.apply("acme", make_reversal(f"deb-{number}", reasons=("", "", "")), write_together)
    found: list[tuple[str, str]] = []
    after = ""
    while after or not found:
        page, after = await kept.moments.list_page("acme", MOMENT_KIND_REVERSAL, after, 2)
        found += [(each.debate_id, each.earlier_debate_id) for each in page]
    assert len(found) == len(set(found)) == 9
    assert await kept.moments.list_page("acme", MOMENT_KIND_UNSPECIFIED, "", 9) == (await kept.listed(), "")


async def test_all_moments_of_a_debate_are_written_by_one_commit(
    kept: KeptMoments, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count_commits(monkeypatch)
    await kept.moments.apply("acme", make_reversal("deb-1", reasons=("", "", "")), write_together)
    assert commits == [1]
    assert len(await kept.listed()) == 3


@pytest.mark.parametrize("lost", [True, False])
async def test_wherever_its_process_stops_a_debate_has_its_moments_once(
    kept: KeptMoments, lost: bool
) -> None:
    request, stops = make_reversal("deb-1", reasons=("", "")), 0
    for limit in range(10):
        try:
            await kept.stopping(Writes(limit, lost)).apply("acme", request, write_together)
        except StoppedError:
            stops += 1
        await kept.moments.apply("acme", request, write_together)
        assert sorted(await kept.earlier()) == ["old-0", "old-1"]
        try:
            await kept.stopping(Writes(limit, lost)).remove("acme", request)
        except StoppedError:
            stops += 1
        await kept.moments.remove("acme", RecordDebateRequest(debate=PastDebate(debate_id="deb-1")))
        assert await kept.documents.find(MOMENTS, {}) == []
    assert stops == 3, "what is written by one commit, and each that is deleted"


async def test_a_debate_that_is_recorded_anew_has_the_moments_of_its_new_record_alone(
    kept: KeptMoments,
) -> None:
    await kept.moments.apply("acme", make_reversal("deb-1", reasons=("", "")), write_together)
    await kept.moments.apply("acme", record(*LONE), write_together)
    assert [each.kind for each in await kept.listed()] == [MOMENT_KIND_LONE_DISSENTER_WON]
    await kept.moments.apply("acme", record(), write_together)
    assert await kept.documents.find(MOMENTS, {}) == []


async def test_nothing_is_looked_for_of_a_debate_that_is_recorded_for_the_first_time(
    kept: KeptMoments, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, found = record(*LONE), note_reads(kept.documents, monkeypatch, "moment")
    text, meaning = search_text(recorded.debate), Embedding(to_vector([1.0]), "m")
    with hold_embeddings([text], [meaning]):
        for _ in range(2):  # it would find its own
            await kept.moments.apply("acme", recorded, write_together)
    assert found == []
    await kept.moments.apply("acme", recorded, write_together)
    assert found == ["acme/deb-1/000"]


async def test_forgetting_a_debate_leaves_the_moments_of_others_and_of_other_tenants(
    kept: KeptMoments,
) -> None:
    for tenant, name in (("acme", "deb-1"), ("acme", "deb-10"), ("other", "deb-1")):
        await kept.moments.apply(tenant, make_reversal(name), write_together)
    await kept.moments.remove("acme", record(debate_id="deb-1"))
    assert [each.debate_id for each in await kept.listed()] == ["deb-10"]
    assert len(await kept.listed("other")) == 1


async def test_moments_of_debates_that_are_older_than_their_days_are_deleted_and_those_of_others_stay(
    kept: KeptMoments,
) -> None:
    for tenant, name, at in (("acme", "deb-1", 1000), ("other", "deb-2", 1999), ("acme", "deb-3", 2001)):
        await kept.moments.apply(tenant, make_reversal(name, at, reasons=("", "")), write_together)

    async def may_go_on() -> bool:
        return True

    for days in (0, 10):
        retention = Retention(days, kept.moments.list_old, end_effect(kept.moments))
        await retention.end_old(2000 + 10 * DAY, may_go_on)
        assert [each.debate_id for each in await kept.listed("other")] == ([] if days else ["deb-2", "deb-2"])
    assert [each.debate_id for each in await kept.listed()] == ["deb-3", "deb-3"]


async def test_a_moment_that_cannot_be_read_hides_no_other(kept: KeptMoments) -> None:
    await kept.moments.apply("acme", make_reversal("deb-1", reasons=("", "", "")), write_together)
    await kept.documents.update(MOMENTS, "acme/deb-1/001", {"moment": {"nothing": 1}})
    assert sorted(await kept.earlier()) == ["old-0", "old-2"]
