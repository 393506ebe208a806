"""The question and the answer of a debate pass few forms."""

import re
import subprocess
from pathlib import Path
from typing import Final

from tests.support.warm_start import list_command

MOST_FORMS: Final = {"question": 15, "answer": 20}
"""Lower a bound when a form goes."""

REPOSITORY: Final = Path(__file__).parents[2]


def test_a_text_passes_no_form_more_than_it_did() -> None:
    """A new form on the way of the question or the answer needs a reason: use the contract's message if it is one."""
    command = list_command(module="tests.support.walk")
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True)

    counts = re.findall(
        r"^(question|answer): \d+ files, \d+ functions, (\d+) forms$", run.stderr, re.MULTILINE
    )
    forms = {name: int(count) for name, count in counts}
    assert forms.keys() == MOST_FORMS.keys(), run.stderr
    assert all(10 <= forms[name] <= MOST_FORMS[name] for name in MOST_FORMS), run.stderr
    assert "message GenerateRequest" in run.stderr
    assert "message GetDebateResponse" in run.stderr
