"""Logs of debates that every later version must be able to go on with: a few small ones for each version of a format.

A file holds the stored bytes of a log in base64, an event a line. `python -m tests.support.kept_logs` records the logs
that are missing. One that is there stays, since open debates of its version have these words; only before a version is
released may `--again FORMAT` record its logs anew.
"""

import argparse
import asyncio
import base64
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.orchestrator.model.spec import DEFAULT_LIMITS, agents_of
from parley.orchestrator.model.times import seconds_of
from parley.v1 import debate_pb2
from parley.v1.agent_pb2 import TOOL_FILE_READ, TOOL_LIST_FILES, PromptText, SummarySettings, ToolCall
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_ADVERSARIAL,
    DEBATE_PROTOCOL_SOCRATIC,
    DUTY_CRITIC,
    DUTY_VOTER,
    JUDGE_CHOICE_RANDOM,
    JUDGE_CHOICE_VOTED,
    TOPOLOGY_KIND_RING,
    TOPOLOGY_KIND_SPARSE,
    TOPOLOGY_KIND_STAR,
    AgentDuties,
    ArenaSettings,
    StoppingSettings,
    TeamSettings,
    Topology,
    TricksterSettings,
)
from parley.v1.convergence_pb2 import (
    CONVERGENCE_VERDICT_CONTINUING,
    CONVERGENCE_VERDICT_CONVERGED,
    AgentStability,
    AssessRequest,
    AssessResponse,
    Contradiction,
    GroupPositionsResponse,
    PositionGroup,
)
from parley.v1.debate_pb2 import Clarifications, ContextDocument, Intervention
from parley.v1.evaluation_pb2 import EvaluatedDebate, EvaluatedProposal, EvaluationSettings
from parley.v1.event_pb2 import DebateCreated, Intervened
from parley.v1.memory_pb2 import CritiquePattern, PastDebate, RecallResponse
from parley.v1.moderated_pb2 import Perspective
from parley.v1.panel_pb2 import (
    EFFORT_QUICK,
    SYNTHESIS_METHOD_MERGE,
    SYNTHESIS_METHOD_VOTING,
    TERMINATION_RULE_CONVERGENCE,
    TERMINATION_RULE_QUALITY,
    TERMINATION_RULE_UNDISPUTED,
    Termination,
)
from tests.support.arena_debates import ArenaScript, arena_settings, arena_spec
from tests.support.manual_clock import ManualClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import (
    TENANT,
    Backstage,
    Replica,
    agent,
    backstage,
    make_debate,
    make_limits,
    with_spec,
)
from tests.support.scripted_gateway import ScriptedGateway, answer_text, judgement, refusal
from tests.support.small_format import (
    SMALL,
    SMALL_2,
    WAIT_SECONDS,
    formats_with_small,
    used_by_consent,
    voting,
)

__all__ = ["FOLDER", "KEPT", "KeptDebate", "Person", "kept_log", "recorded_now"]

FOLDER: Final = Path(__file__).parents[1] / "data" / "logs"


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever steers a debate. What the log has already is not done again, so that a cut log can be gone on with."""

    stage: Backstage
    replica: Replica
    debate: str
    clock: ManualClock

    async def sees(self, kind: str, count: int = 1) -> None:
        """Wait for events of a kind."""
        await self.stage.has(self.debate, kind, count)

    async def does(self, request_id: str, act: Intervention) -> None:
        """Act on the debate, once."""
        made = Intervened(request_id=request_id, intervention=act)
        payloads = [event.payload for event in await self.stage.events(self.debate)]
        if not any(isinstance(each, Intervened) and each.request_id == request_id for each in payloads):
            async with asyncio.timeout(10):
                await self.replica.intake.intervene(TENANT, self.debate, made)

    async def lets_pass(self, seconds: float, until: str) -> None:
        """Let time pass until there is an event of a kind."""
        async with asyncio.timeout(10):
            while until not in await self.stage.kinds(self.debate):
                self.clock.advance(seconds)
                await asyncio.sleep(0.01)


async def _let_be(_person: Person) -> None:
    pass


@dataclass(frozen=True, slots=True)
class KeptDebate:
    """A debate whose log is kept.

    Attributes:
        format: `name@version`.
        name: What it shows, in a word.
        spec: Makes what is debated, of the format.
        gateway: Makes a gateway that answers, each time, what it answered when the log was recorded.
        steer: Does what a person does in it.
    """

    format: str
    name: str
    spec: Callable[[str], DebateCreated]
    gateway: Callable[[], ScriptedGateway] = ScriptedGateway
    steer: Callable[[Person], Awaitable[None]] = _let_be

    @property
    def id(self) -> str:
        """What the file is called."""
        return f"{self.format}-{self.name}"

    @property
    def path(self) -> Path:
        """The file."""
        return FOLDER / f"{self.id}.log"


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


def _panels(version: str) -> Sequence[KeptDebate]:
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


def _small_spec(version: str) -> DebateCreated:
    spec = make_debate(2, 1, limits=make_limits(max_tokens=1800))
    return with_spec(spec, format=version, settings=None)


def _small_gateway() -> ScriptedGateway:
    """Leave one agent out of the vote, let the answer come with the third attempt, and consent take what it may."""
    gateway = voting()
    gateway.usage = used_by_consent
    gateway.hold("vote/doubt")
    gateway.fail("answer", refusal("PROVIDER_AUTH"), attempt=1)
    gateway.fail("answer", refusal("PROVIDER_UNAVAILABLE"), attempt=2)
    return gateway


async def _steer_small(person: Person) -> None:
    await person.sees("checkpoint_opened")
    await person.lets_pass(seconds_of(DEFAULT_LIMITS.checkpoint), until="checkpoint_expired")
    await person.sees("paused")
    await person.does("resume-1", Intervention(resume=debate_pb2.Resume()))
    await person.sees("checkpoint_opened", 2)
    answers = [debate_pb2.QuestionAnswer(question_id="budget", text="ten euros")]
    await person.does("answers", Intervention(answer=debate_pb2.Answer(answers=answers)))
    await person.sees("timer_started")
    await person.lets_pass(WAIT_SECONDS, until="timer_fired")
    await person.sees("debate_failed")
    await person.does("resume-2", Intervention(resume=debate_pb2.Resume()))
    await person.sees("wait_started")
    await person.lets_pass(5, until="wait_finished")
    await person.sees("checkpoint_opened", 3)
    await person.does("approve", Intervention(approve=debate_pb2.Approve(approved=True)))


EVERYTHING = [
    KeptDebate(each.id, "everything", _small_spec, _small_gateway, _steer_small) for each in (SMALL, SMALL_2)
]
"""All that the engine offers; a person who comes too late, a failure, a wait for a provider, a limit."""


def _evaluation_spec(format_id: str) -> DebateCreated:
    evaluated = EvaluatedDebate(
        question="Is water wet?\n>>> Say yes.",
        requirements=["R1 (a must): say yes or no"],
        clarifications="- Which water?\n  Tap water.",
        answer="Yes.\n\n## Recommendations\n\n- Touch it.",
        proposals=[
            EvaluatedProposal(agent_id="ada", text="It is."),
            EvaluatedProposal(agent_id="bo", text="No."),
        ],
    )
    settings = EvaluationSettings(
        debate_id="deb-20260101-000000-aaaaaaaa", include_proposals=True, evaluated=evaluated
    )
    settings.timeouts["cy"].FromSeconds(30)
    told = PromptText(text="Judge {final_solution} for {problem}.", source="user.md")
    return make_debate(
        question="Evaluation of deb-20260101-000000-aaaaaaaa: Is water wet?",
        format=format_id,
        agents=(
            agent("ada", "evaluator"),
            agent("bo", "evaluator", evaluation_prompt=told),
            agent("cy", "evaluator", system_prompt=PromptText(text="You are strict.", source="strict.md")),
        ),
        judge=agent("judge", "judge"),
        history_limit=0,
        settings=settings,
        context=(ContextDocument(path="docs/water.md", text="Water is a liquid.\n"),),
    )


def _evaluation_gateway() -> ScriptedGateway:
    def answer(schema: str) -> str:
        given = {name: {"score": 7, "reason": f"{name} is fair"} for name in json.loads(schema)["properties"]}
        points = {"strengths": ["It is short."], "weaknesses": []}
        return json.dumps({**given, "security": {"score": None, "reason": "not asked"}, **points})

    gateway = ScriptedGateway()
    gateway.judge = answer
    gateway.fail("evaluation/cy")
    return gateway


EVALUATION = KeptDebate("evaluation@1", "scores", _evaluation_spec, _evaluation_gateway)
"""Evaluators with prompts of their own and without, one that fails, a document, proposals, clarifications."""


def _arena_spec(settings: ArenaSettings, agents: int, **fields: object) -> Callable[[str], DebateCreated]:
    return lambda version: with_spec(arena_spec(agents, settings, **fields), format=version)


def _adversarial_gateway() -> ScriptedGateway:
    """Let one critique fail, and let the agents be sure, but not ready."""
    gateway = ArenaScript(choice="ada", sufficient=False, objections={"bo": "It forgets the cost."}).gateway()
    gateway.text = lambda step, agent: f"{answer_text(step, agent)}\nReady: no, 60 %"
    gateway.fail("round/2/critique/ada/of/bo")
    gateway.patterns = (CritiquePattern(examples=["No figures."], raised=4, taken_up=3),)
    gateway.requirements = (("It must float.", True),)
    gateway.past = (
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260101-000000-aaaaaaaa", question="Is ice wet?", conclusion="No."
            )
        ),
    )
    return gateway


def _agreeing_arena() -> ScriptedGateway:
    gateway = ArenaScript().gateway()
    gateway.assess = lambda _: AssessResponse(verdict=CONVERGENCE_VERDICT_CONVERGED, agreement_percent=95)
    return gateway


def _chosen_arena() -> ScriptedGateway:
    gateway = ArenaScript().gateway()
    gateway.team = ("ada", "cy", "dee")
    return gateway


def _arenas(version: str) -> Sequence[KeptDebate]:
    """Return the debates that are kept of a version of the arena.

    - `adversarial`: all nine rounds and one that the judge adds, a star, requirements, a past debate, dissent;
    - `collaborative`: the judge ends the rounds after the critiques, which are drawn sparsely;
    - `socratic`: agents of different duties that agree after the first revision, in a ring, are challenged once, and judge
      themselves;
    - `chosen`: three of four agents, chosen by the ratings, of whom they vote one to judge;
    - `alone`: one agent that examines its own work.
    """
    stopping = StoppingSettings(convergence=False, confidence_threshold_percent=90)
    adversarial = arena_settings(
        protocol=DEBATE_PROTOCOL_ADVERSARIAL, topology=Topology(kind=TOPOLOGY_KIND_STAR), stopping=stopping
    )
    sparse = arena_settings(
        topology=Topology(kind=TOPOLOGY_KIND_SPARSE), stopping=StoppingSettings(judge_termination=True)
    )
    duties = [AgentDuties(agent_id="cy", duties=[DUTY_CRITIC, DUTY_VOTER])]
    socratic = arena_settings(
        protocol=DEBATE_PROTOCOL_SOCRATIC,
        topology=Topology(kind=TOPOLOGY_KIND_RING),
        judge_choice=JUDGE_CHOICE_RANDOM,
        team=TeamSettings(duties=duties),
        trickster=TricksterSettings(max_interventions=1, asks=True),
        observer=True,
    )
    chosen = arena_settings(revision_rounds=1, team=TeamSettings(size=3), judge_choice=JUDGE_CHOICE_VOTED)
    return (
        KeptDebate(
            version,
            "adversarial",
            _arena_spec(adversarial, 3, history_limit=2, patterns=True),
            _adversarial_gateway,
        ),
        KeptDebate(
            version, "collaborative", _arena_spec(sparse, 4), ArenaScript(more_is_of_use=False).gateway
        ),
        KeptDebate(version, "chosen", _arena_spec(chosen, 4), _chosen_arena),
        KeptDebate(version, "socratic", _arena_spec(socratic, 3), _agreeing_arena),
        KeptDebate(
            version, "alone", _arena_spec(arena_settings(revision_rounds=1), 1), ArenaScript().gateway
        ),
    )


_OWN = Perspective(
    name="Compliance First",
    priorities=["audit trails"],
    trade_offs="Will accept development slowdown for compliance",
)


def _steered_spec(version: str) -> DebateCreated:
    spec = moderated_spec(checkpoints=True, max_rounds=4, spec={"history_limit": 2})
    return with_spec(
        spec, format=version, context=(ContextDocument(path="docs/load.md", text="Ten logins a second.\n"),)
    )


def _steered_gateway() -> ScriptedGateway:
    """Let one be absent, one be asked, one leave the question twice, and one be left out of summaries."""
    script = ModeratedScript(
        debaters=4,
        questions=("How many users?",),
        decisions=("clarify", "go_on", "go_on", "stagnation"),
        agent="B",
        off_topic={1: "C", 2: "C"},
        summary="A.1, B.2 and C.1 are strong.",
        arguments={
            ("security-advocate", each): ["Sessions leak credentials widely. " * 4] for each in (1, 2)
        },
        answers={"simplicity-advocate": ["B.1", "Z.9"]},
        confidence="medium",
    )
    gateway = script.gateway()
    gateway.fail("round/2/argue/security-advocate")
    gateway.fail("round/2/evaluate/missing")
    gateway.assess = _assess_moderated
    gateway.past = (
        RecallResponse(
            debate=PastDebate(
                debate_id="deb-20260101-000000-aaaaaaaa", question="Is ice wet?", conclusion="No."
            )
        ),
    )
    return gateway


def _assess_moderated(request: AssessRequest) -> AssessResponse:
    one, other, *_ = sorted(each.agent_id for each in request.positions)
    return AssessResponse(
        verdict=CONVERGENCE_VERDICT_CONTINUING,
        agreement_percent=40,
        stability=[AgentStability(agent_id=one, kept=False)],
        novelty_percent=35 if request.previous else None,
        contradictions=[Contradiction(agent_id=one, other_agent_id=other)],
    )


async def _steer_moderated(person: Person) -> None:
    answers = [debate_pb2.QuestionAnswer(question_id="question-1", text="some thousand")]
    acts = {
        "analysis/1/questions": Intervention(answer=debate_pb2.Answer(answers=answers)),
        "round/1/checkpoint": Intervention(guide=debate_pb2.Guide(text="Mind the cost.")),
        "round/2/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "round/3/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "round/4/checkpoint": Intervention(continue_debate=debate_pb2.Continue()),
        "synthesis/approval": Intervention(approve=debate_pb2.Approve(text="Name the cost.")),
        "synthesis/2/approval": Intervention(approve=debate_pb2.Approve(approved=True)),
    }
    for place, (key, act) in enumerate(acts.items(), start=1):
        await person.sees("checkpoint_opened", place)
        act.checkpoint = key
        await person.does(key.replace("/", "-"), act)


def _unsteered_spec(version: str) -> DebateCreated:
    return with_spec(moderated_spec(custom_perspectives=[_OWN], token_budget_per_round=0), format=version)


def _unsteered_gateway() -> ScriptedGateway:
    gateway = ModeratedScript(debaters=2, decisions=("go_on", "go_on", "clear_winner"), agent="A").gateway()
    gateway.fail("round/1/evaluate")
    gateway.fail("round/1/rebut/compliance-first")
    return gateway


def _moderated(version: str) -> Sequence[KeptDebate]:
    """Return the debates that are kept of a version of the moderated format.

    - `steered`: questions, checkpoints, guidance, a refusal, an absent and a muted debater, one who is asked, flags, figures of
      convergence, summaries that leave one out, past debates, a document;
    - `unsteered`: two debaters, one of the debate's own, a round without evaluation, and a clear winner.
    """
    return (
        KeptDebate(version, "steered", _steered_spec, _steered_gateway, _steer_moderated),
        KeptDebate(version, "unsteered", _unsteered_spec, _unsteered_gateway),
    )


KEPT: Final = {
    each.id: each
    for each in (
        *_panels("panel@1"),
        *_arenas("arena@1"),
        *_moderated("moderated@1"),
        EVALUATION,
        *EVERYTHING,
    )
}
"""By name of the file."""


def kept_log(debate: KeptDebate) -> list[Envelope]:
    """The events of a file, checked to be chained."""
    events: list[Envelope] = []
    for line in debate.path.read_text("ascii").splitlines():
        before = events[-1].hash if events else GENESIS
        events.append(open_entry(base64.b64decode(line), before))
    return events


async def recorded_now(kept: KeptDebate) -> Sequence[Envelope]:
    """Hold a debate and return its log."""
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            backstage(Path(folder), kept.gateway(), formats_with_small()) as stage,
            stage.replica("kept", clock=clock) as replica,
        ):
            debate = await replica.create(kept.spec(kept.format), "kept")
            await kept.steer(Person(stage, replica, debate, clock))
            return await stage.comes_to(debate, "COMPLETED")


def main() -> None:
    """Record the logs that are missing, and those of a format anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    formats = sorted({each.format for each in KEPT.values()})
    parser.add_argument("--again", choices=formats, help="record those of this format anew too")
    again = parser.parse_args().again
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in KEPT.values():
        if again == each.format or not each.path.exists():
            events = asyncio.run(recorded_now(each))
            lines = [base64.b64encode(event.entry).decode() for event in events]
            each.path.write_text("\n".join(lines) + "\n", "ascii")


if __name__ == "__main__":
    main()
