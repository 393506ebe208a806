"""Formal checks: what contributions and the answer state in SMT-LIB, in a block of code, is checked by a solver."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.peers.solver import check_statement
from parley.orchestrator.phases.whole_debate import read_whole_debate
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.analysis_pb2 import FORMAL_RESULT_UNKNOWN, FormalCheck, FormalStatement
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import StepFailed

FORMAL_CHECK: Final = Activity("formal-check", "checking what is stated formally", title="formal check")
_MOST: Final = 8
_MAX_CHARACTERS: Final = 20_000
_LANGUAGES: Final = {"smt2": "smt2", "smtlib": "smt2", "smt-lib": "smt2", "lean": "lean", "lean4": "lean"}
_BLOCK: Final = re.compile(
    r"^[ ]{0,3}(`{3,})[ ]*([\w-]+)[^\n`]*\n(.*?)^[ ]{0,3}\1`*[ ]*$", re.MULTILINE | re.DOTALL
)


async def check_formal_statements(debate: Debate, outcome: Outcome) -> list[FormalCheck]:
    """Return whether what was stated formally holds, each statement once, in the order in which it was made first."""
    statements = await read_whole_debate(debate, outcome, partial(find_statements, debate, outcome))
    return [await _check(debate, number, each) for number, each in enumerate(statements, start=1)]


def find_statements(debate: Debate, outcome: Outcome) -> list[FormalStatement]:
    """Return the formal statements of the contributions to the rounds, then those of the answer that are new; at most 8."""
    said = [
        (key, each.reply.rendered or each.reply.text) for key, each in debate.made.items() if each.work.round
    ]
    found: dict[tuple[str, str], FormalStatement] = {}
    for key, text in (*said, ("", outcome.description)):
        for language, code in _list_blocks(text):
            statement = FormalStatement(contribution=key, language=language, text=code)
            found.setdefault((language, " ".join(code.split())), statement)
    return list(found.values())[:_MOST]


def _list_blocks(text: str) -> Iterator[tuple[str, str]]:
    for block in _BLOCK.finditer(text):
        language, code = _LANGUAGES.get(block[2].lower()), block[3].strip()
        if language and code and len(code) <= _MAX_CHARACTERS:
            yield language, code


async def _check(debate: Debate, number: int, statement: FormalStatement) -> FormalCheck:
    work = FORMAL_CHECK.create_work()
    key = f"{AFTER_THE_ANSWER}formal/{number}"
    checked = await debate.call_service(key, work, statement, lambda: check_statement(statement))
    if isinstance(checked, StepFailed):
        return FormalCheck(
            statement=statement, result=FORMAL_RESULT_UNKNOWN, detail=" ".join(checked.message.split())
        )
    return checked
