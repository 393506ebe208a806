"""A setting that the orchestrator refuses is named as the person wrote it."""

from pathlib import Path

import grpc
import pytest

from parley.cli.input.refusals import locate_refusal
from parley.client import DebateSpec, ParleyError
from parley.config.loading import loads
from parley.runtime.errors import FieldViolation

SPEC = DebateSpec(
    question="Which?", hook_ids=["hook-0123456789ab", "nightly"], environment={"team": "Payments"}
)
"""All of it comes from the command line."""


def locate(field: str, text: str, config: str = "") -> str:
    """The message for a field that is refused, of a debate with a configuration file."""
    found = loads(config, "parley.yaml", Path()) if config else None
    violations = (FieldViolation(field, text),)
    error = ParleyError(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", "", violations=violations)
    return str(locate_refusal(error, found, SPEC, None))


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("spec.question", "must be at most 256 KiB", "the question must be at most 256 KiB"),
        ("spec.hook_ids[1]", "is no hook", "--hook nightly: is no hook"),
        ("spec.hook_ids", "must be at most 8", "--hook: must be at most 8"),
        ("spec.labels", "the name 'A?' is wrong", "--label: the name 'A?' is wrong"),
        ("spec.environment.team", "is too long", "--fact team: is too long"),
        ("spec.environment", "has too many", "--fact: has too many"),
    ],
)
def test_a_refused_option_is_named(field: str, text: str, said: str) -> None:
    assert locate(field, text) == said


def test_a_refused_fact_of_the_file_is_named_at_its_line() -> None:
    config = "debate:\n  environment:\n    team: Payments\n"
    assert locate("spec.environment.team", "is too long", config).startswith(
        "parley.yaml:3: debate.environment.team"
    )
