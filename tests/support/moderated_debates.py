"""Moderated debates on the scripted gateway: what is debated, and a moderator and debaters that say what a test wants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.orchestrator.formats.moderated.settings import SETTINGS
from parley.v1.event_pb2 import DebateCreated
from parley.v1.moderated_pb2 import ModeratedSettings
from tests.support.orchestration import make_debate, with_spec
from tests.support.scripted_gateway import ScriptedGateway, StepRequest, scripted_judge

_WORDS = (
    ("calm", "bold"),
    ("quick", "plain"),
    ("firm", "warm"),
    ("stark", "mild"),
    ("brisk", "deep"),
    ("bright", "late"),
)
QUESTION = "Should we keep user sessions in Redis or in PostgreSQL, and ship soon?"


def moderated_settings(**fields: Any) -> ModeratedSettings:
    """The format's defaults, with these fields in place of them."""
    completed = SETTINGS.with_defaults(ModeratedSettings(**fields))
    assert isinstance(completed, ModeratedSettings)
    return completed


def moderated_spec(
    count: int = 2, *, question: str = QUESTION, spec: Mapping[str, Any] | None = None, **settings: Any
) -> DebateCreated:
    """A moderated debate for which so many agents lend their routes; without checkpoints unless these are asked for."""
    told = moderated_settings(**{"checkpoints": False, **settings})
    made = make_debate(count, format="moderated@1", settings=told, **(spec or {}))
    return with_spec(made, question=question)


@dataclass(frozen=True, slots=True)
class ModeratedScript:
    """What moderator and debaters say: the same whenever they are asked.

    Attributes:
        questions: What the moderator must know first; asked once.
        debaters: How many it wants; `ranking`: perspectives that it prefers.
        decisions: What it decides after each round, in turn; then the last one again.
        agent: The letter of the winner, or of whom it asks.
        off_topic: Letters that it finds off topic, by round.
        summary: What it says of a round; empty: of each debater something.
        topic: What the decision is on; `confidence`: how sure it is.
        calls: What an agent is called where the moderator names it, for its letter.
        answers: The points that a rebuttal answers, by agent id; else the first one it is shown.
        arguments: Points of an argument, by agent id and round.
        characters: Length of each point beyond its first words.
    """

    questions: Sequence[str] = ()
    debaters: int = 3
    ranking: Sequence[str] = ()
    decisions: Sequence[str] = ("go_on",)
    agent: str = ""
    off_topic: Mapping[int, Sequence[str]] = field(default_factory=dict)
    summary: str = ""
    topic: str = "Sessions"
    confidence: str = "high"
    tensions: Sequence[Mapping[str, Any]] = ({"text": "Speed against simplicity.", "open": False},)
    calls: str = "{letter}"
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    arguments: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    characters: int = 0

    def gateway(self) -> ScriptedGateway:
        """Return a gateway whose agents answer so."""
        return scripted_judge(self._answer)

    def _answer(self, asked: StepRequest, properties: Mapping[str, Any]) -> Mapping[str, Any] | None:  # noqa: PLR0911 (a case a kind)
        step, agent = asked.step, asked.agent.id
        number = int(step.split("/")[1]) if step.startswith("round/") else 0
        if "opening" in properties:
            return self._analysis(step, properties)
        if "points" in properties:
            own = self.arguments.get((agent, number)) or self._points(agent, number)
            return {
                "position": f"{agent} stands by its case of round {number}.",
                "points": own,
                "gives_up": [f"{agent} pays for round {number}."],
            }
        if "answers" in properties:
            names = properties["answers"]["items"]["properties"]["point"].get("enum", [])
            points = self.answers.get(agent, names[:1])
            answers = [
                {
                    "point": each,
                    "quote": "no such words",
                    "answer": f"{agent} doubts {each}.{self._filler(agent)}",
                    "concedes": False,
                }
                for each in points
            ]
            return {"answers": answers, "position": f"{agent} stands by its case.", "agrees_with": []}
        if "off_topic" in properties:
            return self._evaluation(number, properties["agent"]["enum"][1:])
        if "passages" in properties:
            letters = properties["passages"]["items"]["properties"]["agent"]["enum"]
            return {
                "passages": [
                    {"agent": self.calls.format(letter=each), "text": f"{each}.1 is still open."}
                    for each in letters
                ]
            }
        if "recommendation" in properties:
            return self._decision(step, properties)
        return None

    def _analysis(self, step: str, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        found = {
            "topic": "Where sessions live",
            "domain": "data",
            "constraints": ["There is little time."],
            "binary": self.debaters == 2,
            "debaters": self.debaters,
            "perspectives": list(self.ranking),
            "assumptions": ["There are some thousand users."],
            "opening": "Where should sessions live, given that we ship soon?",
        }
        asked = list(self.questions) if step == "analysis/1" else []
        return {**found, **({"questions": asked} if "questions" in properties else {})}

    def _points(self, agent: str, number: int) -> list[str]:
        return [
            f"{word.title()} {agent} {word}ness sessions {number}{place}.{self._filler(f'{agent}{number}{place}')}"
            for place, word in enumerate(_WORDS[number % len(_WORDS)], start=1)
        ]

    def _filler(self, seed: str) -> str:
        sentences, left = [], self.characters
        for place in range(self.characters):
            if left <= 0:
                break
            sentences.append(f" {seed} says sentence {place}.")
            left -= len(sentences[-1])
        return "".join(sentences)

    def _evaluation(self, number: int, letters: Sequence[str]) -> Mapping[str, Any]:
        decision = self.decisions[min(number, len(self.decisions)) - 1]
        told = " ".join(f"Agent {each} put {each}.1 at its strongest in round {number}." for each in letters)
        return {
            "summary": self.summary or told,
            "open": f"What does it cost after round {number}?",
            "off_topic": [self.calls.format(letter=each) for each in self.off_topic.get(number, ())],
            "reason": f"round {number} says so",
            "decision": decision,
            "agent": self.agent and self.calls.format(letter=self.agent),
            "question": "How many requests a second?" if decision == "clarify" else "",
        }

    def _decision(self, step: str, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        letters = properties["perspectives"]["items"]["properties"]["agent"]["enum"]
        return {
            "topic": self.topic,
            "perspectives": [
                {"agent": self.calls.format(letter=each), "key_arguments": [f"{each} had a reason."]}
                for each in letters
            ],
            "agreements": ["Sessions expire."],
            "tensions": list(self.tensions),
            "recommendation": f"Keep them in PostgreSQL, by {step}.",
            "confidence": self.confidence,
            "caveats": ["Unless there are millions of users."],
            "dissents": [{"agent": self.calls.format(letter=letters[-1]), "text": "It is slower."}],
        }
