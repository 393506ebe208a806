"""What is done in a moderated debate, in words."""

from typing import Final

from parley.orchestrator.model.tasks import Activity

__all__ = ["ANALYSIS", "ARGUMENT", "COMPLETION", "DECISION", "EVALUATION", "FOLLOW_UP", "REBUTTAL", "REPLY"]

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
