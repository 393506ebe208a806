"""What the moderator and the debaters do, in words, and what every prompt says of their parts."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.formats.moderated.perspectives import Viewpoint
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Activity, Prompt
from parley.orchestrator.phases.history import heading
from parley.orchestrator.phases.prompting import quotation

ANALYSIS: Final = Activity("analysis", "analyses the question", "Analysis")
ARGUMENT: Final = Activity("argument", "argues", "Arguments")
REBUTTAL: Final = Activity("rebuttal", "answers the others", "Rebuttals")
EVALUATION: Final = Activity("evaluation", "evaluates the round", "The moderator")
COMPLETION: Final = Activity(
    "completion",
    "adds who was left out of its summary",
    "Added to the summary",
    title="addition to the summary",
)
REPLY: Final = Activity(
    "reply", "answers the moderator", "Answers to the moderator", title="answer to the moderator"
)
DECISION: Final = Activity("synthesis", "writes the decision")
FOLLOW_UP: Final = Activity("follow-up", "makes an issue", title="issue of the decision")


MODERATOR_PROMPT: Final = (
    "You moderate a debate on this question. Debaters argue for perspectives that you do not share: your part is that each is heard"
    " at its strongest, that they stay with the question, and that a person can decide well in the end. Weigh reasons; take no"
    " side before the decision."
)


_FIT: Final = "If the question is not about software, take these for what corresponds to them there.\n"


def describe_debater(own: Viewpoint, others: Sequence[Viewpoint]) -> str:
    """Return what its prompts say of who a debater is."""
    names = ", ".join(each.name for each in others)
    return (
        f"You take part in a moderated debate and speak for one perspective: {own.name}. It is a point of view, not a person.\n"
        f"It puts first: {', '.join(own.priorities)}.\n"
        f"Its price: {own.trade_offs}\n"
        f"{'' if own.is_custom else _FIT}"
        f"Others speak for: {names}. What they put first is theirs to argue.\n"
        "Argue from your priorities as far as reasons carry them, and say openly what following you would cost. Stay with the"
        " question that was asked, and with what the moderator puts to you in a round. Claim no facts about the asker's situation that nobody gave; say what you assume."
        " Concede a point that is right: the aim is a good decision, not a victory. When your perspective has nothing to object to"
        " an answer, say that you can go along with it instead of looking for a quarrel."
    )


def quote_round(debate: Debate, made: Sequence[Contribution], reader: str = "") -> Prompt:
    """Return what was said in a round, each in a quotation of its own that says whose it is; `reader` is who reads it."""
    titles = (heading(debate.letter, each, reader) for each in made)
    return tuple(
        quotation(f"{title[0].upper()}{title[1:]}", each.text)
        for title, each in zip(titles, made, strict=True)
    )
