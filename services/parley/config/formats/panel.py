"""The panel in the `debate:` section."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from parley.config.formats.concurrency import KEY_OF_CONCURRENCY, ConcurrencyKeys, set_concurrency
from parley.config.formats.format import Format
from parley.config.summarization import SummarizationEntry, summaries_message
from parley.v1 import panel_pb2
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["PANEL", "PanelKeys", "TerminationEntry"]


@dataclass(frozen=True, slots=True)
class TerminationEntry:
    """When the rounds end."""

    rule: Annotated[
        Literal["fixed", "convergence", "quality"],
        Field(
            description="`fixed`: all rounds are held. `convergence`: they end early once the agents agree, or "
            "disagree and no longer move; needs two agents. `quality`: once the judge scores the best work at the "
            "threshold or above. Default: `fixed`."
        ),
    ] = "fixed"
    threshold: Annotated[int | None, Field(ge=1, le=100, description="Percent. Default: 90.")] = None
    grouping_agent: Annotated[
        str | None,
        Field(
            description="Of `convergence`, the agent that is asked which positions say the same, where it cannot be told. "
            "Default: the judge."
        ),
    ] = None


@dataclass(frozen=True)
class PanelKeys(ConcurrencyKeys):
    """The panel's keys of the `debate:` section."""

    rounds: Annotated[int | None, Field(ge=1, le=100, description="Default: 3.")] = None
    include_full_history: Annotated[
        bool | None, Field(description="Whether agents see the whole text of earlier rounds. Default: true.")
    ] = None
    carry_forward: Annotated[
        bool | None,
        Field(description="Whether a round starts from the last round's refinements. Default: false."),
    ] = None
    summarization: Annotated[SummarizationEntry | None, Field(description="Summaries of long histories.")] = (
        None
    )
    termination: Annotated[TerminationEntry | None, Field(description="When the rounds end.")] = None
    synthesis_method: Annotated[
        Literal["judge", "voting", "merge"] | None,
        Field(
            description="`judge`: the judge writes the answer and scores the agents. `voting`: the agents vote on their "
            "final proposals; needs two agents. `merge`: the judge merges the final proposals, and the agents say what "
            "they hold against it. Default: `judge`."
        ),
    ] = None


_RULES: Final = {
    "fixed": panel_pb2.TERMINATION_RULE_FIXED,
    "convergence": panel_pb2.TERMINATION_RULE_CONVERGENCE,
    "quality": panel_pb2.TERMINATION_RULE_QUALITY,
}


_METHODS: Final = {
    "judge": panel_pb2.SYNTHESIS_METHOD_JUDGE,
    "voting": panel_pb2.SYNTHESIS_METHOD_VOTING,
    "merge": panel_pb2.SYNTHESIS_METHOD_MERGE,
}


def _set_settings(spec: DebateSpec, keys: PanelKeys) -> None:
    settings = panel_pb2.PanelSettings(
        rounds=keys.rounds or 0,
        include_full_history=keys.include_full_history,
        carry_forward=keys.carry_forward,
    )
    if keys.synthesis_method is not None:
        settings.synthesis_method = _METHODS[keys.synthesis_method]
    if keys.summarization is not None:
        settings.summaries.CopyFrom(summaries_message(keys.summarization))
    if keys.termination is not None:
        settings.termination.rule = _RULES[keys.termination.rule]
        settings.termination.threshold_percent = keys.termination.threshold or 0
        settings.termination.grouping_agent_id = keys.termination.grouping_agent or ""
    if settings != panel_pb2.PanelSettings():
        spec.panel.CopyFrom(settings)
    set_concurrency(spec, keys)


def _set_rounds(spec: DebateSpec, rounds: int) -> None:
    spec.panel.rounds = rounds


PANEL: Final = Format(
    name="panel",
    keys=PanelKeys,
    renamed={"termination_condition": "termination"},
    renamed_inside={TerminationEntry: {"type": "rule"}},
    without_section="3 rounds, as always",
    set_settings=_set_settings,
    set_rounds=_set_rounds,
    key_of_field={
        "spec.panel.rounds": "rounds",
        "spec.panel.include_full_history": "include_full_history",
        "spec.panel.carry_forward": "carry_forward",
        "spec.panel.summaries": "summarization",
        "spec.panel.summaries.enabled": "summarization.enabled",
        "spec.panel.summaries.threshold": "summarization.threshold",
        "spec.panel.summaries.max_length": "summarization.max_length",
        "spec.panel.synthesis_method": "synthesis_method",
        "spec.panel.termination": "termination",
        "spec.panel.termination.rule": "termination.rule",
        "spec.panel.termination.threshold_percent": "termination.threshold",
        "spec.panel.termination.grouping_agent_id": "termination.grouping_agent",
        **KEY_OF_CONCURRENCY,
    },
)
"""Rounds of proposals, critiques and refinements, then the judge's answer."""
