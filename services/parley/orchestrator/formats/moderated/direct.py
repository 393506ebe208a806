"""The checkpoint after a round: a person reads the moderator's summary, and says where the debate goes."""

from parley.orchestrator.formats.moderated.discussion import Discussion
from parley.orchestrator.formats.moderated.rounds import Verdict
from parley.orchestrator.phases.account import ended_from_outside
from parley.v1.debate_pb2 import Direction
from parley.v1.event_pb2 import RoundsEnded

__all__ = ["direct"]


async def direct(discussion: Discussion, verdict: Verdict, ended: RoundsEnded | None) -> RoundsEnded | None:
    """Ask a person for the direction, and return why the rounds end; None where there is another one.

    `ended`: why they would end without a word. Guidance lets a debate go on that the moderator would end, as far as there are rounds.
    """
    debate, number = discussion.debate, len(discussion.rounds)
    discussion.enter("checkpoint", f"round/{number}")
    text = _text(discussion, verdict, ended)
    closed = await debate.run_checkpoint(f"round/{number}/checkpoint", Direction(text=text))
    await discussion.steer(f"round/{number}/directed")
    if discussion.steering.end:
        return ended or ended_from_outside(discussion.steering, number)
    is_guided = closed.intervention.HasField("guide")
    return None if is_guided and number < discussion.settings.max_rounds else ended


def _text(discussion: Discussion, verdict: Verdict, ended: RoundsEnded | None) -> str:
    """Return where the debate stands, and what each choice leads to."""
    number, last = len(discussion.rounds), discussion.settings.max_rounds
    summary = discussion.rounds[-1].summary
    following = f"round {number + 1} of at most {last}"
    if ended is None:
        choices = (
            f"Continue: {following} is held. Guide: the same, with what you say before everybody."
            " End: the moderator writes the decision now."
        )
    elif number < last:
        choices = (
            "Continue or End: the rounds end here, and the moderator writes the decision."
            f" Guide: {following} is held all the same, with what you say before everybody."
        )
    else:
        choices = (
            "Continue or End: the moderator writes the decision. Guide: the same, with what you say before it;"
            " this was the last round."
        )
    found = verdict.finding[0].upper() + verdict.finding[1:]
    why = (
        ""
        if ended is None or verdict.ended is not None
        else f" {ended.explanation[0].upper()}{ended.explanation[1:]}."
    )
    return f"{summary}\n\n{found.rstrip('.')}.{why}\n\n{choices}"
