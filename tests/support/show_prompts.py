"""The prompts of a panel, an arena or a moderated debate, at real lengths, as models get them: `python -m tests.support.show_prompts --help`.

A debate is held on the scripted gateway, with answers of the given length, and with facts, a document, and what memory has of the past. What a phase is told can then be read as a whole.
"""

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.roles.catalogue import load_shipped_roles
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.effect_pb2 import DecisionConfidence
from parley.v1.memory_pb2 import CritiquePattern, Evidence, PastDebate, RecallResponse
from parley.v1.panel_pb2 import Objection
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.moderated_debates import QUESTION, ModeratedScript, moderated_settings
from tests.support.orchestration import agent, backstage, make_debate, with_fields, with_spec
from tests.support.scripted_gateway import ScriptedGateway, StepRequest

_GATEWAYS: Mapping[str, Callable[[int], ScriptedGateway]] = {
    "panel": lambda _: ScriptedGateway(),
    "arena": lambda _: ArenaScript().gateway(),
    "moderated": lambda characters: ModeratedScript(characters=characters // 2).gateway(),
}
"""By format; told how long an answer is."""
_REQUIREMENTS = (("The answer is yes or no.", True), ("It names an example.", False))
_FACTS = {"team": "Payments", "date": "2026-03-01"}
_DOCUMENTS = (ContextDocument(path="docs/load.md", text="Ten logins a second.\n"),)
_PAST = PastDebate(
    debate_id="deb-20260101-000000-aaaaaaaa",
    question="Is ice wet?",
    conclusion="Ice is not wet until it melts.",
    concluded_at=Timestamp(seconds=1_767_225_600),
    strength=VOTE_STRENGTH_MODERATE,
    confidence=DecisionConfidence(votes=2, votes_cast=3),
    dissents=[Objection(agent_id="cy", text="It is wet on a warm day.")],
    evidence=[Evidence(text="Below zero it does not melt.", source="https://example.org/ice")],
)
_PATTERNS = (CritiquePattern(examples=["It gives no figures."], raised=4, taken_up=3),)
_ASKED_ISSUES = re.compile(r"The issues: ([A-Z]\.\d+(?:, [A-Z]\.\d+)*)\.")
_FILLER = re.compile(r"(?:[\w-]+ says sentence \d+\. ?){3,}")


def make_long_answer(step: str, name: str, characters: int) -> str:
    """Return an answer of about so many characters that names its step first and last."""
    sentences = (f"{name} says sentence {number}." for number in range(1, characters))
    text = " ".join(islice(sentences, characters // 24))
    return f"Begin of {step}. {text} End of {step}.\nPosition: {name} stands by {step}."


def _answer(gateway: ScriptedGateway, step: str, name: str, characters: int) -> str:
    """Return an answer that says what became of each issue, where its prompt asks for that: one is taken up, and so on in turn."""
    text = make_long_answer(step, name, characters)
    issues = _ASKED_ISSUES.search(gateway.asked(step).prompt)
    if issues is None:
        return text
    told = [
        f"{issue}: {'taken up, the proposal now says so' if place % 2 == 0 else 'not taken up, because it costs more than it gains'}"
        for place, issue in enumerate(issues[1].split(", "))
    ]
    return "\n".join([text, "", "## Answers to issues", *told])


def _team(count: int, context_tokens: int) -> tuple[Agent, ...]:
    names = ("ada", "bo", "cy", "dee", "eve", "fay", "gil")[:count]
    roles = (each.name for each in load_shipped_roles().all() if "propose" in each.prompts)
    return tuple(
        with_fields(agent(name, role), context_tokens=context_tokens)
        for name, role in zip(names, roles, strict=False)
    )


async def _hold_debate(given: argparse.Namespace) -> list[StepRequest]:
    gateway = _GATEWAYS[given.format](given.characters)
    gateway.text = lambda step, name: _answer(gateway, step, name, given.characters)
    gateway.requirements = _REQUIREMENTS
    gateway.past, gateway.patterns = (RecallResponse(debate=_PAST),), _PATTERNS
    judge = with_fields(agent("judge", "judge"), context_tokens=given.context)
    team = _team(given.agents, given.context)
    spec = make_debate(3, given.rounds, agents=team, judge=judge)
    if given.format == "arena":
        arena = arena_settings(revision_rounds=given.rounds)
        spec = arena_spec(3, arena, agents=team, judge=judge)
    if given.format == "moderated":
        settings = moderated_settings(
            checkpoints=False, max_rounds=given.rounds, perspectives=given.agents, token_budget_per_round=0
        )
        spec = with_spec(spec, format="moderated@1", question=QUESTION, settings=settings)
    spec = with_spec(spec, history_limit=5, patterns=True, environment=_FACTS, context=_DOCUMENTS)
    with tempfile.TemporaryDirectory() as folder:
        async with backstage(Path(folder), gateway) as stage, stage.replica() as replica:
            await stage.comes_to(await replica.create(spec), "COMPLETED")
    return gateway.calls


def _show(asked: StepRequest, *, whole: bool) -> Iterator[str]:
    yield f"{'=' * 20} {asked.step} {'=' * 20}"
    yield f"({len(asked.prompt):,} characters, about {len(asked.prompt) // 4:,} tokens)"
    for part in asked.parts:
        text = part.text if whole else _FILLER.sub("[…] ", part.text)
        yield f"{'[system] ' if part.role == 1 else ''}{text}\n"
    if asked.schema:
        yield f"[schema] {asked.schema}\n"


def main() -> None:
    """Hold a debate and print the prompts of the steps that match."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "steps", nargs="*", default=["round/[135]/*/ada*", "synthesis*"], help="patterns of keys"
    )
    parser.add_argument("--format", choices=tuple(_GATEWAYS), default="panel")
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--characters", type=int, default=3000, help="of an answer")
    parser.add_argument(
        "--context", type=int, default=0, help="tokens of every agent's context; 0: not known"
    )
    parser.add_argument("--whole", action="store_true", help="do not shorten the answers in the output")
    given = parser.parse_args()
    for asked in asyncio.run(_hold_debate(given)):
        if any(fnmatchcase(asked.step, pattern) for pattern in given.steps):
            sys.stdout.write("\n".join(_show(asked, whole=given.whole)) + "\n")


if __name__ == "__main__":
    main()
