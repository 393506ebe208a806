"""An issue made of a decision: asked for at a checkpoint, made under one key whatever dies, and never in the way of the debate."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from parley.orchestrator.api.decision import decision_of
from parley.orchestrator.api.folding import fold
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats.moderated import V1
from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.follow_up import offer_issue
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import CheckpointOpened, Concluded, DebateCreated, Warned
from parley.v1.moderated_pb2 import FollowUp, ModeratedOutcome, ModeratedSettings
from tests.support.checked_format import person
from tests.support.debate_logs import check_log
from tests.support.issue_tracker_server import (
    ISSUE_URL,
    IssueTrackerServer,
    issue_tracker_server,
    make_answer,
    wait_forever,
)
from tests.support.issue_trackers import Fault, Kind, tracker
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import Backstage, backstage, make_debate
from tests.support.stopping import Play

DECISION = ModeratedOutcome(
    topic="A cache?", rounds=1, recommendation="No cache.", approved=True, caveats=["Ten times the users."]
)


def _make_format(name: str, decision: ModeratedOutcome) -> Format:
    """A moderated debate from its decision on."""

    async def run(debate: Debate) -> Outcome:
        outcome = Outcome(description="No cache.", moderated=decision)
        await offer_issue(Discussion(debate), outcome.moderated)
        return outcome

    return Format(name=name, version=1, run=run, settings=V1.settings)


REFUSED = ModeratedOutcome()
REFUSED.CopyFrom(DECISION)
REFUSED.approved = False
DECIDED, UNAPPROVED = _make_format("decided", DECISION), _make_format("unapproved", REFUSED)
FORMATS = Formats([*all_formats().all(), DECIDED, UNAPPROVED])


@pytest.fixture
async def server() -> AsyncIterator[IssueTrackerServer]:
    async with issue_tracker_server() as served:
        yield served


@pytest.fixture
def formats() -> Formats:
    return FORMATS


@pytest.fixture
def tracked(stage: Backstage, server: IssueTrackerServer) -> Backstage:
    """Replicas that have a tracker."""
    return replace(stage, issues=server.client(seconds=1.0))


def make_decided_debate(debate_format: Format = DECIDED) -> DebateCreated:
    return make_debate(2, format=debate_format.id, settings=ModeratedSettings(checkpoints=True))


async def hold_to_offer(stage: Backstage) -> str:
    """Hold a debate until its person is asked whether they want an issue."""
    async with stage.replica() as replica:
        debate = await replica.create(make_decided_debate())
        await stage.has(debate, "checkpoint_opened")
    return debate


async def answer_offer(stage: Backstage, debate: str, *, wanted: bool = True) -> FollowUp | None:
    """Say whether the person wants an issue, and return what became of it; None where none was offered."""
    async with stage.replica() as replica:
        await replica.intervene(debate, "approve", approved=wanted, checkpoint="follow-up")
        return find_follow_up(await stage.comes_to(debate, "COMPLETED"))


def find_follow_up(events: list[Envelope]) -> FollowUp | None:
    check_log(events)
    (outcome,) = [each.payload.outcome.moderated for each in events if isinstance(each.payload, Concluded)]
    return outcome.follow_up if outcome.HasField("follow_up") else None


def warnings(events: list[Envelope]) -> list[str]:
    return [each.payload.message for each in events if isinstance(each.payload, Warned)]


async def test_a_wanted_issue_is_made_once_and_told_with_the_decision(
    tracked: Backstage, server: IssueTrackerServer
) -> None:
    debate = await hold_to_offer(tracked)
    assert not server.issues, "nothing leaves before the person wants it"
    assert await answer_offer(tracked, debate) == FollowUp(requested=True, url=ISSUE_URL)
    (issue,) = server.issues
    assert (issue["title"], issue["labels"]) == ("A cache?", ["decision"])
    assert "## Question\n\n> Is water wet?\n\n## Recommendation\n\n> No cache.\n\n" in issue["body"]
    assert [each["Idempotency-Key"] for each in server.headers] == [debate]


async def test_the_person_is_told_what_is_sent_where_and_what_a_refusal_leads_to(
    tracked: Backstage,
) -> None:
    debate = await hold_to_offer(tracked)
    payloads = [each.payload for each in await tracked.events(debate)]
    (opened,) = [each for each in payloads if isinstance(each, CheckpointOpened)]
    text = opened.approval.text
    assert tracked.issues is not None
    assert text.startswith(
        f"Make an issue of this decision at {tracked.issues.name}?\n\nIts title: A cache?. "
    )
    assert "/repos" not in text, "the rest of the URL may be a secret"
    assert "Refuse: the debate closes without one; the decision stands either way." in text


async def test_an_issue_that_is_not_wanted_is_not_made(
    tracked: Backstage, server: IssueTrackerServer
) -> None:
    assert await answer_offer(tracked, await hold_to_offer(tracked), wanted=False) == FollowUp(
        requested=False
    )
    assert not server.issues


async def test_without_a_tracker_nobody_is_asked(stage: Backstage) -> None:
    async with stage.replica() as replica:
        events = await stage.comes_to(await replica.create(make_decided_debate()), "COMPLETED")
    assert find_follow_up(events) is None
    assert "checkpoint_opened" not in [each.kind for each in events]


async def test_nobody_is_asked_about_a_decision_that_was_not_approved(tracked: Backstage) -> None:
    async with tracked.replica() as replica:
        events = await tracked.comes_to(await replica.create(make_decided_debate(UNAPPROVED)), "COMPLETED")
    assert find_follow_up(events) is None
    assert "checkpoint_opened" not in [each.kind for each in events]


@pytest.mark.parametrize("case", ["refused", "slow"])
async def test_a_tracker_that_fails_is_a_warning_and_fails_no_debate(
    tracked: Backstage, server: IssueTrackerServer, case: str
) -> None:
    server.answer = make_answer(b"oops", status=500) if case == "refused" else wait_forever
    debate = await hold_to_offer(tracked)
    made = await answer_offer(tracked, debate)
    assert tracked.issues is not None
    said = "answered 500 Internal Server Error" if case == "refused" else "did not answer within 1 s"
    assert made is not None
    assert made.requested
    assert made.failure.startswith(f"{tracked.issues.name} {said}")
    assert warnings(await tracked.events(debate)) == [f"no issue was made of the decision: {made.failure}"]
    assert len(server.issues) == 1


async def test_whoever_goes_on_after_a_kill_asks_again_under_the_same_key(
    tracked: Backstage, server: IssueTrackerServer
) -> None:
    server.answer = wait_forever
    tracked = replace(tracked, issues=server.client(seconds=60.0))
    debate = await hold_to_offer(tracked)
    async with tracked.replica() as replica:
        await replica.intervene(debate, "approve", approved=True, checkpoint="follow-up")
        await server.asked.wait()
        await replica.crash()
    server.answer = make_answer()
    async with tracked.replica():
        events = await tracked.comes_to(debate, "COMPLETED")
    assert find_follow_up(events) == FollowUp(requested=True, url=ISSUE_URL)
    assert [each["Idempotency-Key"] for each in server.headers] == [debate, debate]
    assert server.issues[0] == server.issues[1]


@pytest.mark.parametrize("kind", [Kind.GITHUB, Kind.GITLAB])
async def test_whoever_goes_on_after_a_kill_finds_the_issue_that_was_made(
    stage: Backstage, kind: Kind
) -> None:
    async with tracker(kind) as served:
        served.faults = [Fault.STALLS]
        tracked = replace(stage, issues=served.client())
        debate = await hold_to_offer(tracked)
        async with tracked.replica() as replica:
            await replica.intervene(debate, "approve", approved=True, checkpoint="follow-up")
            await served.stalled.wait()
            await replica.crash()
        async with tracked.replica():
            events = await tracked.comes_to(debate, "COMPLETED")
    assert find_follow_up(events) == FollowUp(requested=True, url="https://tracker.example/issues/1")
    assert (len(served.issues), len(served.bodies)) == (1, 1)


async def test_a_person_who_was_asked_is_heard_by_a_replica_without_a_tracker(
    stage: Backstage, tracked: Backstage, server: IssueTrackerServer
) -> None:
    made = await answer_offer(stage, await hold_to_offer(tracked))
    assert made == FollowUp(requested=True, failure="PARLEY_FOLLOW_UP_URL is not set any more")
    assert not server.issues


async def test_a_whole_moderated_debate_ends_with_its_issue_and_its_document(
    tmp_path: Path, server: IssueTrackerServer
) -> None:
    script = ModeratedScript(decisions=("go_on", "converged"))
    async with backstage(tmp_path, script.gateway()) as opened:
        stage = replace(opened, issues=server.client())
        async with stage.replica() as replica, person(stage, replica):
            events = await stage.comes_to(
                await replica.create(moderated_spec(checkpoints=True, max_rounds=2)), "COMPLETED"
            )
    assert find_follow_up(events) == FollowUp(requested=True, url=ISSUE_URL)
    (issue,) = server.issues
    assert issue["title"] == "Sessions"
    assert "> Keep them in PostgreSQL, by synthesis." in issue["body"]
    folded = fold(events)
    assert folded.HasField("outcome")
    document = decision_of(folded, folded.outcome.moderated, V1)
    assert document.file_name.endswith("-sessions.md")
    for told in (
        "# Decision: Should we keep user sessions in Redis or in PostgreSQL, and ship soon?\n",
        "- **Rounds:** 2\n",
        "; a person approved it.\n",
        "**Key arguments:**\n\n- B had a reason.\n",
        "## Key Tensions\n\n- **Settled:** Speed against simplicity.\n- **Open:** The debate ended without agreement.",
        "Low, by the moderator.\n",
        "## End of the Rounds\n\n- **Rounds held:** 2\n- **Reason:** all 2 rounds were held\n",
        "**Caveats:**\n\n- Unless there are millions of users.\n",
        f"An issue was made: <{ISSUE_URL}>\n",
        f"- Model calls: {folded.calls}\n",
    ):
        assert told in document.markdown


async def test_it_ends_the_same_wherever_it_is_stopped(tmp_path: Path, server: IssueTrackerServer) -> None:
    play = Play(make_decided_debate(), formats=FORMATS, issues=server.client())
    held = await play.held(tmp_path)
    assert held.outcome.moderated.follow_up == FollowUp(requested=True, url=ISSUE_URL)
    await held.ends_the_same_wherever_it_is_stopped()
    assert {each["Idempotency-Key"] for each in server.headers} == {held.debate}
