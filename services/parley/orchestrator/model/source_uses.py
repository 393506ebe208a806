"""Who cited which source of a debate, and where. Pure functions."""

from collections.abc import Iterator

from parley.orchestrator.model.answer_text import answer_text
from parley.orchestrator.model.sources import count_citations
from parley.orchestrator.model.tasks import phase_of
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.debate_pb2 import Contribution, Debate, Reply
from parley.v1.source_pb2 import SourceUse


def list_source_uses(debate: Debate) -> list[SourceUse]:
    """Return who cited which source, contribution by contribution, the answer last.

    Summaries, and what is said after the answer, only repeat what others cited. Nothing is known of a debate whose documents have no numbers.
    """
    if debate.spec.context and not debate.sources:
        return []
    return [*_uses_of_contributions(debate), *_uses_of_answer(debate)]


def _uses_of_contributions(debate: Debate) -> Iterator[SourceUse]:
    for made in debate.contributions:
        cited = count_citations(_text_of(made.reply))
        if not cited or made.work.summarized_characters or made.key.startswith(AFTER_THE_ANSWER):
            continue
        for number, count in cited.items():
            yield SourceUse(
                source=number,
                agent_id=made.work.agent_id,
                contribution=made.key,
                round=made.work.round,
                phase=phase_of(made.work),
                in_answer=_is_the_answer(made),
                count=count,
            )


def _uses_of_answer(debate: Debate) -> Iterator[SourceUse]:
    """Yield what an answer cites that is no contribution of its own, such as the proposal that won."""
    cited = count_citations(answer_text(debate.outcome))
    if not cited or any(map(_is_the_answer, reversed(debate.contributions))):
        return
    author = _find_author(debate)
    for number, count in cited.items():
        yield SourceUse(source=number, agent_id=author, phase="answer", in_answer=True, count=count)


def _find_author(debate: Debate) -> str:
    authors = [made.work.agent_id for made in debate.contributions if made.is_answer]
    outcome = debate.outcome
    return outcome.stand_in.agent_id or outcome.panel.synthesized_by or (authors[-1] if authors else "")


def _is_the_answer(made: Contribution) -> bool:
    return made.is_answer and not made.work.round


def _text_of(reply: Reply) -> str:
    """Return what a contribution says, with the reasons that it gives for taking issues up or not."""
    text = reply.rendered or reply.text
    answers = reply.issue_answers
    return "\n".join([text, *[each.reason for each in answers]]) if answers else text
