"""How the moderator may end the rounds, and how sure a decision may be after each end."""

from typing import get_args

import pytest

from parley.orchestrator.formats.moderated.ends import ENDS, cap_confidence, max_confidence
from parley.orchestrator.formats.moderated.evaluate import Decision
from parley.v1 import debate_pb2
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    CONVERGENCE_VERDICT_UNDETERMINED,
    ConvergenceVerdict,
)
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    CONFIDENCE_UNSPECIFIED,
    Confidence,
)


def test_the_moderator_may_say_each_end_and_that_the_debate_goes_on() -> None:
    assert set(get_args(Decision)) == {"go_on", "clarify", *ENDS}


@pytest.mark.parametrize(
    ("reason", "most"),
    [
        (debate_pb2.STOP_REASON_CONVERGED, CONFIDENCE_HIGH),
        (debate_pb2.STOP_REASON_CLEAR_WINNER, CONFIDENCE_HIGH),
        (debate_pb2.STOP_REASON_STAGNATION, CONFIDENCE_MEDIUM),
        (debate_pb2.STOP_REASON_PERSON, CONFIDENCE_MEDIUM),
        (debate_pb2.STOP_REASON_ALL_ROUNDS_COMPLETED, CONFIDENCE_LOW),
        (debate_pb2.STOP_REASON_TOTAL_TIMEOUT, CONFIDENCE_LOW),
        (debate_pb2.STOP_REASON_TOKEN_BUDGET, CONFIDENCE_LOW),
    ],
)
def test_the_end_of_the_rounds_says_how_sure_a_decision_may_be(
    reason: debate_pb2.StopReason.ValueType, most: Confidence.ValueType
) -> None:
    assert max_confidence(reason, None) == most


@pytest.mark.parametrize(
    ("measured", "most"),
    [
        (CONVERGENCE_VERDICT_CONVERGED, CONFIDENCE_HIGH),
        (CONVERGENCE_VERDICT_UNDETERMINED, CONFIDENCE_HIGH),
        (CONVERGENCE_VERDICT_CONTINUING, CONFIDENCE_MEDIUM),
    ],
)
def test_agreement_that_was_measured_to_be_none_makes_nothing_sure(
    measured: ConvergenceVerdict.ValueType, most: Confidence.ValueType
) -> None:
    assert max_confidence(debate_pb2.STOP_REASON_CONVERGED, measured) == most


def test_what_is_said_counts_up_to_what_is_allowed_and_nothing_said_is_low() -> None:
    levels = (CONFIDENCE_HIGH, CONFIDENCE_MEDIUM, CONFIDENCE_LOW)
    assert [cap_confidence(each, CONFIDENCE_MEDIUM) for each in levels] == [
        CONFIDENCE_MEDIUM,
        CONFIDENCE_MEDIUM,
        CONFIDENCE_LOW,
    ]
    assert cap_confidence(CONFIDENCE_UNSPECIFIED, CONFIDENCE_HIGH) == CONFIDENCE_LOW
