"""Panels whose logs are kept."""

import json
from collections.abc import Sequence

from parley.orchestrator.model.spec import agents_of
from parley.v1 import debate_pb2
from parley.v1.agent_pb2 import TOOL_FILE_READ, TOOL_LIST_FILES, PromptText, SummarySettings, ToolCall
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    AssessRequest,
    AssessResponse,
    GroupPositionsResponse,
    PositionGroup,
)
from parley.v1.debate_pb2 import Clarifications, ContextDocument, Intervention
from parley.v1.event_pb2 import DebateCreated
from parley.v1.memory_pb2 import CritiquePattern, PastDebate, RecallResponse
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
    Termination,
)
from tests.support.kept_debates.kept_debate import KeptDebate, Person
from tests.support.orchestration import (
    agent,
    make_debate,
    with_spec,
)
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway


def _rounds_spec(version: str) -> DebateCreated:
    return make_debate(
        3,
        2,
        format=version,
        history_limit=3,
        max_output_tokens=200,
        summaries=SummarySettings(threshold=50, max_length=400),
        termination=Termination(rule=TERMINATION_RULE_CONVERGENCE),
    )


def _rounds_gateway() -> ScriptedGateway:
    gateway = ScriptedGateway()
    gateway.fail("round/1/critique/ada/of/bo")
    gateway.hold("round/1/propose/ada")
    return gateway


async def _steer_rounds(person: Person) -> None:
    await person.sees("step_started", 3)
    await person.does("guide", Intervention(guide=debate_pb2.Guide(text="Mind the cost.")))
    await person.does("mute", Intervention(mute=debate_pb2.Mute(agent_id="cy")))
    person.stage.gateway.release("round/1/propose/ada")


def _quality_spec(version: str) -> DebateCreated:
    told = PromptText(text="You are a pirate who knows water.", source="pirate.md")
    spec = make_debate(
        2,
        2,
        format=version,
        history_limit=2,
        patterns=True,
        include_full_history=False,
        carry_forward=True,
        termination=Termination(rule=TERMINATION_RULE_QUALITY, threshold_percent=90),
        context=(
            ContextDocument(path="docs/water.md", text="Water is a liquid.\n>>>\n"),
            ContextDocument(path="b.md", text="Ice floats."),
        ),
    )
    equipped = agent("ada", tools=(TOOL_FILE_READ, TOOL_LIST_FILES), tool_call_limit=4, system_prompt=told)
    return with_spec(spec, agents=(equipped, *agents_of(spec.spec)[1:]))


def _quality_gateway() -> ScriptedGateway:
    gateway = ScriptedGateway()
    gateway.past = (
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260101-000000-aaaaaaaa", question="Is ice wet?", conclusion="No."
            )
        ),
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260102-000000-bbbbbbbb", question="Is fog wet?", conclusion="Yes."
            )
        ),
    )
    gateway.patterns = (CritiquePattern(examples=["No figures."], raised=4, taken_up=3),)
    gateway.tool_calls["ada"] = (ToolCall(name="file_read", arguments='{"path": "b.md"}', characters=11),)
    gateway.requirements = (("It must float.", True), ("It should be blue.", False))
    return gateway


def _agreement_spec(version: str) -> DebateCreated:
    ends = Termination(rule=TERMINATION_RULE_CONVERGENCE, threshold_percent=80)
    return make_debate(2, 4, format=version, termination=ends)


def _agreement_gateway() -> ScriptedGateway:
    """Let the agents agree after a second round."""

    def assess(request: AssessRequest) -> AssessResponse:
        if request.previous:
            return AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=85)
        return AssessResponse(verdict=CONVERGENCE_VERDICT_CONTINUING, agreement_percent=40)

    gateway = ScriptedGateway()
    gateway.assess = assess
    return gateway


def _undisputed_spec(version: str) -> DebateCreated:
    return make_debate(2, 3, format=version, termination=Termination(rule=TERMINATION_RULE_UNDISPUTED))


def _undisputed_gateway() -> ScriptedGateway:
    """Let the drafts agree, and the critics find nothing severe in the second round."""

    def criticize(step: str, _agent: str) -> str:
        severity = 7 if step.startswith("round/1/") else 3
        issue = {"issue": "It forgets ice.", "severity": severity, "suggestion": "Name it."}
        return json.dumps({"issues": [issue], "agrees": True, "remarks": ""})

    gateway = ScriptedGateway()
    together = PositionGroup(agent_ids=["ada", "bo"], representative_agent_id="ada", position="yes")
    gateway.group = lambda: GroupPositionsResponse(groups=[together], majority=True, certain=True)
    gateway.critic = criticize
    return gateway


def _quick_spec(version: str) -> DebateCreated:
    return make_debate(2, 0, format=version, effort=EFFORT_QUICK)


def _ballots_and_stands() -> ScriptedGateway:
    """Let every agent vote for the proposal that it is shown first, and object to what is merged."""

    def answer(schema: str) -> str:
        if "choice" in json.loads(schema)["properties"]:
            return json.dumps({"choice": 1, "confidence": 0.5, "reason": "it stands first"})
        return json.dumps({"objects": True, "objection": "It forgets the cost."})

    gateway = ScriptedGateway()
    gateway.judge = answer
    return gateway


def _voting_spec(version: str) -> DebateCreated:
    return make_debate(2, 1, format=version, synthesis_method=SYNTHESIS_METHOD_VOTING)


def _merge_spec(version: str) -> DebateCreated:
    return make_debate(2, 1, format=version, synthesis_method=SYNTHESIS_METHOD_MERGE)


def _clarified_spec(version: str) -> DebateCreated:
    return make_debate(2, 1, format=version, clarifications=Clarifications(max_times=1))


def _curious() -> ScriptedGateway:
    """Let every agent ask the same before it begins."""

    def answer(schema: str) -> str:
        asks = "questions" in json.loads(schema)["properties"]
        return json.dumps({"questions": ["Which water?"]}) if asks else judgement(schema)

    gateway = ScriptedGateway()
    gateway.judge = answer
    return gateway


async def _steer_clarified(person: Person) -> None:
    await person.sees("checkpoint_opened")
    answers = [debate_pb2.QuestionAnswer(question_id="ada-1", text="That of the sea.")]
    await person.does("answers", Intervention(answer=debate_pb2.Answer(answers=answers)))


def _demonstration_spec(version: str) -> DebateCreated:
    return make_debate(2, 2, format=version, demonstration=True)


def _analysed_spec(version: str) -> DebateCreated:
    document = ContextDocument(path="docs/water.md", text="Water is a liquid.")
    return make_debate(2, 1, format=version, context=(document,), analysis=True)


def panels(version: str) -> Sequence[KeptDebate]:
    """Return the debates that are kept of a version of the panel.

    - `rounds`: guidance, an agent that is muted, summaries, a failed critique, agreement that cannot be told;
    - `quality`: the judge scores rounds, work is carried forward, agents see their own line of work, past debates and
      documents;
    - `agreement`: agents that see the full history agree after the second round, and the rounds end;
    - `undisputed`: nothing is disputed any more after the second round of three;
    - `quick`: drafts alone;
    - `voting`: the answer by vote;
    - `merge`: the answer by merge, with objections;
    - `clarified`: questions to the person before it begins;
    - `demonstration`: a very small model answers;
    - `analysed`: what the answer rests on is found out after it.
    """
    return (
        KeptDebate(version, "rounds", _rounds_spec, _rounds_gateway, _steer_rounds),
        KeptDebate(version, "quality", _quality_spec, _quality_gateway),
        KeptDebate(version, "agreement", _agreement_spec, _agreement_gateway),
        KeptDebate(version, "undisputed", _undisputed_spec, _undisputed_gateway),
        KeptDebate(version, "quick", _quick_spec),
        KeptDebate(version, "voting", _voting_spec, _ballots_and_stands),
        KeptDebate(version, "merge", _merge_spec, _ballots_and_stands),
        KeptDebate(version, "clarified", _clarified_spec, _curious, _steer_clarified),
        KeptDebate(version, "demonstration", _demonstration_spec),
        KeptDebate(version, "analysed", _analysed_spec),
    )
