"""A debate that is too large for one message, assembled from its parts."""

from collections.abc import AsyncIterable, Iterable
from typing import Final, TypeAlias

from parley.v1.debate_pb2 import Contribution, Debate, FailedContribution
from parley.v1.event_pb2 import Event
from parley.v1.orchestrator_pb2 import GetAnswerResponse, ListContributionsResponse

TOO_LARGE: Final = "DEBATE_TOO_LARGE"
"""The reason of the error if a debate is too large for one message."""

_Outcome: TypeAlias = Contribution | FailedContribution


async def fill_contributions(debate: Debate, pages: AsyncIterable[ListContributionsResponse]) -> None:
    """Fill in contributions and failures; of a retried step only its latest attempt."""
    latest: dict[str, _Outcome] = {}
    async for page in pages:
        _add_latest(latest, page.contributions)
        _add_latest(latest, page.failures)
    for each in latest.values():
        if isinstance(each, Contribution):
            debate.contributions.append(each)
        else:
            debate.failures.append(each)


def _add_latest(latest: dict[str, _Outcome], made: Iterable[_Outcome]) -> None:
    for each in made:
        earlier = latest.get(each.key)
        if earlier is None or earlier.attempt <= each.attempt:
            latest.pop(each.key, None)  # it takes the place of its latest attempt
            latest[each.key] = each


def fill_answer(debate: Debate, answer: GetAnswerResponse) -> None:
    """Fill in the answer and the outcome."""
    debate.answer, debate.process = answer.markdown, answer.process
    if answer.HasField("outcome"):
        debate.outcome.CopyFrom(answer.outcome)


def fill_documents(debate: Debate, first: bytes) -> None:
    """Fill in the texts of the documents from the stored bytes of the first event."""
    del debate.spec.context[:]
    debate.spec.context.extend(Event.FromString(first).debate_created.spec.context)
