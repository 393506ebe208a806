"""The dimensions in which an answer is judged, and what the scores mean in each. They are words of version 1."""

from typing import Final

from msgspec import Struct

from parley.v1.evaluation_pb2 import (
    EVALUATION_DIMENSION_COMPLIANCE,
    EVALUATION_DIMENSION_FUNCTIONAL_COMPLETENESS,
    EVALUATION_DIMENSION_MAINTAINABILITY,
    EVALUATION_DIMENSION_PERFORMANCE,
    EVALUATION_DIMENSION_REQUIREMENTS_FULFILMENT,
    EVALUATION_DIMENSION_SECURITY,
    EVALUATION_DIMENSION_TESTABILITY,
    EvaluationDimension,
)

MIN_SCORE: Final = 1
MAX_SCORE: Final = 10
_STEPS: Final = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Dimension(Struct, frozen=True):
    """A dimension.

    Attributes:
        name: In an evaluator's answer.
        title: For people.
        asks: What is looked at.
        anchors: What the answer is like that gets 1 or 2, 3 or 4, and so on.
    """

    number: EvaluationDimension.ValueType
    name: str
    title: str
    asks: str
    anchors: tuple[str, str, str, str, str]


DIMENSIONS: Final = (
    Dimension(
        EVALUATION_DIMENSION_FUNCTIONAL_COMPLETENESS,
        "functional_completeness",
        "Functional completeness",
        "Is everything there that the question asks for, so that one could act on it?",
        (
            "it answers something else, or hardly anything",
            "main parts are missing",
            "the main parts are there; several others are missing or only named",
            "all parts are there; a few details are open",
            "every part is worked out, edge cases too; nothing has to be added before one acts",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_PERFORMANCE,
        "performance",
        "Performance",
        "Will it be fast enough, with the resources there are, now and when the load grows?",
        (
            "it cannot carry the load that is stated, or that is plain to expect",
            "likely bottlenecks are not seen",
            "fit for the present load; growth and limits are left to chance",
            "bottlenecks are named and dealt with; figures are missing in places",
            "load, limits and growth are reckoned with figures, and the design follows from them",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_SECURITY,
        "security",
        "Security",
        "Does it keep out misuse, and protect data and secrets, with safe failure?",
        (
            "it opens a door that anybody can use",
            "main risks are not seen, or measures do not meet them",
            "the usual measures are named; trust boundaries or failure are unclear",
            "risks are named and met; a few lesser ones are open",
            "assets, boundaries and attacks are thought through, and each has a measure that fits",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_MAINTAINABILITY,
        "maintainability",
        "Maintainability",
        "Can others understand it, change it and run it for years?",
        (
            "nobody but its author could work with it",
            "parts are entangled, so that each change touches many",
            "understandable in the main; some parts are heavier than their use",
            "clear parts with clear duties; likely changes stay local",
            "as simple as the task allows, and changes that are to come are cheap by design",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_COMPLIANCE,
        "compliance",
        "Compliance",
        "Does it keep to the laws, licences, standards and house rules that apply or are stated?",
        (
            "it breaks a rule that clearly applies",
            "rules that apply are not seen",
            "rules are named; how they are kept is left open",
            "rules are kept; proof or details are missing in places",
            "every rule that applies is named, kept, and can be shown to be kept",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_TESTABILITY,
        "testability",
        "Testability",
        "Can it be shown that it works, before and after it is put to use?",
        (
            "nothing says how one would know that it works",
            "it could hardly be tested, or only as a whole and by hand",
            "parts can be tested; how, and against what, is mostly left open",
            "tests and measurements are named for the main parts",
            "each claim can be checked by a test or a measurement that is named, failure included",
        ),
    ),
    Dimension(
        EVALUATION_DIMENSION_REQUIREMENTS_FULFILMENT,
        "requirements_fulfilment",
        "Requirements fulfilment",
        "Are the requirements met that the question and the clarifications state?",
        (
            "a must is broken, or most requirements are passed over",
            "a must is met in part only, or several others are not met",
            "musts are met; others in part",
            "all are met; one or two only just, or without saying how",
            "each one is met, and the answer says how",
        ),
    ),
)


def scale() -> str:
    """Return what each dimension asks and what its scores mean, as text for an evaluator."""
    return "\n\n".join(map(_describe, DIMENSIONS))


def _describe(dimension: Dimension) -> str:
    anchors = (f"- {step}: {anchor}" for step, anchor in zip(_STEPS, dimension.anchors, strict=True))
    return "\n".join([f"{dimension.name}: {dimension.asks}", *anchors])
