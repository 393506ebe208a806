"""The questions of a debate, put to the person at the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parley.cli.commands.typed_answer import ask
from parley.cli.person import discard_input
from parley.cli.printing import say
from parley.cli.terminal.words import debating_agents
from parley.client import ParleyClient
from parley.v1.debate_pb2 import Debate, Question

__all__ = ["Answers", "ask_questions", "send_answers"]


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person says to questions.

    Attributes:
        texts: By the id of the question; what was skipped is not there.
        enough: Whether nothing more is to be asked.
    """

    texts: Mapping[str, str]
    enough: bool


async def ask_questions(debate: Debate, questions: Sequence[Question]) -> Answers:
    """Put the questions one at a time and return what is typed."""
    names = {agent.id: agent.name for agent in debating_agents(debate)}
    moderator = debate.spec.judge.agent.id
    is_moderators = bool(moderator) and all(each.agent_id == moderator for each in questions)
    who = "The moderator has" if is_moderators else "The agents have"
    discard_input()
    count = f"{len(questions)} questions" if len(questions) > 1 else "a question"
    say(f"{who} {count}. An empty line skips one, Ctrl-D ends the questions: the debate begins.")
    said: dict[str, str] = {}
    for number, question in enumerate(questions, 1):
        asks = "" if is_moderators else names.get(question.agent_id) or question.agent_id
        text = await ask(f"{number}/{len(questions)} {asks}{': ' if asks else ''}{question.text}")
        if text is None:
            return Answers(said, enough=True)
        if text:
            said[question.id] = text
    return Answers(said, enough=False)


async def send_answers(parley: ParleyClient, debate_id: str, key: str, answers: Answers) -> int:
    """Record what a person said, or that they said nothing; return the sequence of the event."""
    if answers.texts:
        return await parley.answer(debate_id, answers=answers.texts, enough=answers.enough, checkpoint=key)
    return await parley.continue_debate(debate_id, checkpoint=key)
