"""The follow-up: an issue made of an approved decision, if the operator named a tracker and the person wants one."""

from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf.struct_pb2 import Struct

from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.ends import CONFIDENCE_NAMES
from parley.orchestrator.formats.moderated.words import FOLLOW_UP
from parley.orchestrator.model.errors import StepError
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.runtime.safe_markdown import inline, list_item, quote
from parley.v1.debate_pb2 import Approval
from parley.v1.event_pb2 import StepFailed
from parley.v1.moderated_pb2 import FollowUp, ModeratedOutcome

_KEY: Final = "follow-up"
_LABEL: Final = "decision"
_MAX_QUESTION: Final = 4_000
_MAX_BODY: Final = 60_000
"""Characters; GitHub takes 65,536."""


async def offer_issue(discussion: Discussion, decision: ModeratedOutcome) -> None:
    """Ask the person whether they want an issue of their approved decision, make it, and note in the decision what came of it.

    A replica without a tracker asks no person; a person who was asked already is heard all the same. If a replica dies, the next
    one looks for the issue before it asks for one.
    """
    debate, tracker = discussion.debate, discussion.debate.services.issues
    if not decision.approved or (tracker is None and not debate.checkpoints.was_opened(_KEY)):
        return
    issue = issue_of(debate.id, debate.spec.question, decision)
    discussion.enter_state("checkpoint", _KEY)
    closed = await debate.run_checkpoint(_KEY, Approval(text=_offer_text(tracker, issue)))
    if not closed.intervention.approve.approved:
        decision.follow_up.SetInParent()  # offered, and not wanted
        return

    async def create() -> FollowUp:
        if tracker is None:
            raise StepError("NO_TRACKER", "PARLEY_FOLLOW_UP_URL is not set any more")
        return await tracker.create_issue(issue, debate.id)

    made = await debate.call_service(f"{_KEY}/issue", FOLLOW_UP.create_work(), issue, create)
    if isinstance(made, StepFailed):
        discussion.warn(f"{_KEY}/warning", f"no issue was made of the decision: {made.message}")
        made = FollowUp(requested=True, failure=" ".join(made.message.split()))
    decision.follow_up.CopyFrom(made)


def issue_of(debate_id: str, question: str, decision: ModeratedOutcome) -> Struct:
    """Return the issue: its `title`, its `body` in CommonMark, and its `labels`, as GitHub's API takes them."""
    title = " ".join(decision.topic.split()) or f"Decision of {debate_id}"
    rounds = "1 round" if decision.rounds == 1 else f"{decision.rounds} rounds"
    end = f"\n\nDecided in the debate {inline(debate_id)} after {rounds}, and approved by a person."
    body = _shorten("\n\n".join(_body(question, decision)), _MAX_BODY - len(end)) + end
    issue = Struct()
    issue.update({"title": title, "body": body, "labels": [_LABEL]})
    return issue


def _body(question: str, decision: ModeratedOutcome) -> Iterator[str]:
    yield "## Question"
    yield quote(_shorten(question, _MAX_QUESTION))
    yield "## Recommendation"
    yield quote(decision.recommendation)
    yield f"Confidence: {CONFIDENCE_NAMES[decision.confidence]}."
    names = {each.agent_id: each.perspective.name for each in decision.perspectives}
    dissents = [
        f"{inline(names.get(each.agent_id, each.agent_id))}: {each.text}" for each in decision.dissents
    ]
    yield from _section("Caveats", decision.caveats)
    yield from _section("Open Tensions", [each.text for each in decision.tensions if each.open])
    yield from _section("Dissenting View", dissents)
    for each in decision.perspectives:
        yield from _section(each.perspective.name, each.key_arguments)


def _section(title: str, points: Sequence[str]) -> Iterator[str]:
    said = [each for each in points if each.strip()]
    if said:
        yield f"## {inline(title)}"
        yield "\n".join(map(list_item, said))


def _offer_text(tracker: IssueTracker | None, issue: Struct) -> str:
    """Return what is put to the person: what is sent, where to, and what a refusal leads to."""
    where = f" at {tracker.name}" if tracker is not None else ""
    title, characters = inline(str(issue["title"])), len(str(issue["body"]))
    return (
        f"Make an issue of this decision{where}?\n\n"
        f"Its title: {title}. Its text, of {characters:,} characters: the question, the recommendation with its confidence, "
        "caveats, open tensions and dissent, and the key arguments of each perspective.\n\n"
        "Approve: the issue is made. Refuse: the debate closes without one; the decision stands either way."
    )


def _shorten(text: str, maximum: int) -> str:
    return text if len(text) <= maximum else f"{text[: maximum - 1]}…"
