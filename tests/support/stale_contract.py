"""A word on failures that come of generated code which is older than the contract."""

import re
from typing import Final

import pytest

from tests.support.guides import ROOT

_MISSING: Final = re.compile(
    r"cannot import name '(\w+)' from 'parley\.v1\."
    r"|module 'parley\.v1\.\w+' has no attribute '(\w+)'"
    r'|Protocol message \w+ has no "(\w+)" field'
    r"|AttributeError: (\w+)$",
    re.MULTILINE,
)


def note_stale_contract(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Add to a failure over a name that the generated code lacks what to do, if the contract has the name."""
    if not report.failed or not (found := _MISSING.search(report.longreprtext)):
        return
    name = found[found.lastindex or 0]
    texts = (each.read_text() for each in (ROOT / "protos").rglob("*.proto"))
    if any(re.search(rf"\b{name}\s*[={{]", text) for text in texts):
        advice = f"protos/ has `{name}`; if services/parley/v1 lacks it, run `make protos`"
        report.sections.append(("the contract", advice))
