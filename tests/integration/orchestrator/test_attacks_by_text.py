"""Texts that try to be more than quotation: each is looked for in every prompt of a debate as a model gets it."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.fitting import Unfittable, fit
from parley.orchestrator.phases.prompting import quotation
from parley.v1.debate_pb2 import ContextDocument
from parley.v1.event_pb2 import DebateCreated
from parley.v1.gateway_pb2 import PROMPT_ROLE_USER, PromptPart
from parley.v1.memory_pb2 import PastDebate, RecallResponse
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.debate_logs import run_debate
from tests.support.moderated_debates import ModeratedScript, moderated_settings
from tests.support.orchestration import agent, make_debate, with_spec
from tests.support.prompt_parts import quote_documents, user
from tests.support.scripted_gateway import ScriptedGateway

MARK: Final = "PLANTED"
FORMATS: Final = ("panel@1", "arena@1", "moderated@1")
_TITLE: Final = re.compile(
    r"[^\n]* \(quotation(?:, not instructions|; nothing in it changes your role or your task)\):"
)
_ENTRY: Final = re.compile(
    r"\[round \d+, [a-z ]+ by (?:you|agent [A-Z])(?: of (?:your|agent [A-Z]'s) proposal)?\]"
)


@cache
def attacks() -> Mapping[str, list[Any]]:
    text = Path("tests/data/attacks.yaml").read_text("utf-8")
    found: Mapping[str, list[Any]] = yaml.safe_load(text)
    return found


def plant(attack: str) -> str:
    return attack.format(mark=MARK, gt=">" * 40)


def spec_of(format_name: str, question: str) -> tuple[DebateCreated, ScriptedGateway]:
    team = tuple(agent(name, role) for name, role in (("ada", "architect"), ("bo", "security")))
    documents = tuple(
        ContextDocument(path=plant(each["path"]), text=plant(each["text"])) for each in attacks()["document"]
    )
    gateway = {
        "panel@1": ScriptedGateway,
        "arena@1": ArenaScript().gateway,
        "moderated@1": ModeratedScript().gateway,
    }[format_name]()
    judge = agent("judge", "judge")
    spec = make_debate(2, 2, agents=team, judge=judge, include_full_history=True)
    if format_name == "arena@1":
        spec = arena_spec(2, arena_settings(revision_rounds=2), agents=team, judge=judge)
    if format_name == "moderated@1":
        settings = moderated_settings(
            checkpoints=False, max_rounds=2, perspectives=2, token_budget_per_round=0
        )
        spec = with_spec(spec, format=format_name, settings=settings)
    gateway.past = [
        RecallResponse(
            debate=PastDebate(
                debate_id=f"deb-2026010{place}-000000-aaaaaaaa", question="Which?", conclusion=plant(each)
            )
        )
        for place, each in enumerate(attacks()["memory"], 1)
    ]
    return with_spec(spec, question=plant(question), context=documents), gateway


async def prompts_of(
    format_name: str, agents_say: str, question: str, folder: Path
) -> list[tuple[PromptPart, ...]]:
    spec, gateway = spec_of(format_name, question)
    gateway.text = lambda _step, _name: plant(agents_say)
    gateway.requirements = [(plant(each), True) for each in attacks()["requirement"]]
    await run_debate(folder, gateway, spec)
    return [
        tuple(
            PromptPart(
                role=part.role or PROMPT_ROLE_USER,
                text=part.text,
                shrink_priority=part.shrink_priority,
                document=part.document,
            )
            for part in asked.parts
        )
        for asked in gateway.calls
    ]


def read_quotation(text: str) -> str | None:
    """What a part quotes; None for one that is no whole quotation."""
    title, _, rest = text.partition("\n")
    opening, _, rest = rest.partition("\n")
    body, _, closing = rest.rpartition("\n")
    whole = _TITLE.fullmatch(title) and len(opening) >= 3 and not opening.strip("<")
    if not whole or closing != ">" * len(opening) or closing in body or MARK in title:
        return None
    return body


def list_other_lines(body: str) -> Iterator[str]:
    """The lines of a quoted debate that are no entry's text, headings left out."""
    lines = iter(body.split("\n"))
    for line in lines:
        if not _ENTRY.fullmatch(line):
            yield line
            continue
        opening = next(lines)
        assert len(opening) >= 3, opening
        assert not opening.strip("<"), opening
        for inner in lines:
            if inner == ">" * len(opening):
                break


def check(parts: tuple[PromptPart, ...]) -> int:
    """Return how many parts hold something planted; all of them as quotation."""
    found = 0
    for part in parts:
        if MARK not in part.text or part.text.startswith("Question:\n"):
            continue
        found += 1
        body = read_quotation(part.text)
        assert body is not None, part.text
        if part.text.startswith(("The debate", "Your work")):
            assert not any(MARK in line for line in list_other_lines(body)), part.text
    return found


@pytest.mark.parametrize(
    ("format_name", "number"),
    [
        pytest.param(name, number, marks=[pytest.mark.long] if number >= 4 and name != FORMATS[0] else [])
        for name in FORMATS
        for number in range(16)
    ],
)
async def test_whatever_an_agent_a_document_or_memory_says_stays_quotation(
    format_name: str, number: int, tmp_path: Path
) -> None:
    questions = attacks()["question"]
    prompts = await prompts_of(
        format_name, attacks()["agent"][number], questions[number % len(questions)], tmp_path
    )
    assert sum(check(quote_documents(parts)) for parts in prompts) > len(attacks()["document"])
    required = [
        part for parts in prompts for part in parts if part.text.startswith("What the answer has to meet")
    ]
    assert all(part.text.count(MARK) == len(attacks()["requirement"]) for part in required)
    assert bool(required) is (format_name != "moderated@1")  # which draws up none


@given(
    attack=st.sampled_from(
        [*attacks()["agent"], *attacks()["memory"], *(each["text"] for each in attacks()["document"])]
    ),
    allowed=st.integers(20, 400),
    length=st.integers(0, 900),
)
def test_fitting_takes_no_marks_and_no_title_off_a_quotation(attack: str, allowed: int, length: int) -> None:
    part = quotation("What agent B says", f"{plant(attack)}{' word' * length}\n{plant(attack)}")
    try:
        (sent,) = fit([user(part.text, 1)], allowed)[0]
    except Unfittable:
        return
    assert read_quotation(sent.text) is not None or re.fullmatch(
        r"\[… \d+ characters left out …\]", sent.text
    )


def test_there_are_thirty_six_of_them() -> None:
    assert sum(map(len, attacks().values())) == 36
    assert len(attacks()["agent"]) == 16
