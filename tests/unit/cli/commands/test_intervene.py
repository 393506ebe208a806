"""The commands that steer a debate, in this process: what they ask for, what they say, and how they are refused."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.protobuf.message import Message

from parley.cli.__main__ import run
from parley.cli.terminal.event_lines import event_lines, status_line
from parley.cli.terminal.progress import DebateProgress, advance
from parley.runtime.errors import FieldViolation, ParleyError, failed_precondition, invalid_argument
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_WAITING,
    Approval,
    Approve,
    Continue,
    DebateSpec,
    Direction,
    Guide,
    Intervention,
    Question,
    Questions,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Paused,
    Resumed,
)
from tests.support.made_events import made_event
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted
from tests.unit.cli.commands.scripts import OTHER_ID

KEY = "round/2/checkpoint"
ANSWER_WITH = f"parley continue {DEBATE_ID} --checkpoint {KEY}"
OR_ELSE = "(or guide, end)"
DIRECTION = CheckpointOpened(direction=Direction(text="Go\non?"))
QUESTIONS = CheckpointOpened(
    questions=Questions(
        text="Some things are unclear.",
        questions=[
            Question(id="q1", agent_id="ada", text="Which scale?"),
            Question(id="q2", text="How soon?"),
        ],
    )
)
APPROVAL = CheckpointOpened(approval=Approval(text="This team?"))
for _opened in (DIRECTION, QUESTIONS, APPROVAL):
    _opened.until.FromJsonString("2026-01-02T00:00:00Z")
CONTINUED = CheckpointClosed(intervention=Intervention(continue_debate=Continue()))


@pytest.fixture
def orchestrator() -> Iterator[ScriptedOrchestrator]:
    with scripted(ScriptedOrchestrator()) as serving:
        serving.debate = ScriptedDebate(DebateSpec(question="Which?"))
        yield serving


@pytest.mark.parametrize(
    ("arguments", "asked", "said"),
    [
        (["pause", "ID"], "pause {}", "pause; calls in flight are waited for"),
        (["pause", "ID", "--now"], "pause { stop_calls: true }", "pause; calls in flight are stopped"),
        (
            ["guide", "ID", "Be brief."],
            'guide { text: "Be brief." }',
            "guidance; the next round gets it, or the",
        ),
        (["end", "ID"], "end {}", "end of the rounds; the answer comes after the current one"),
        (["end", "ID", "--checkpoint", KEY], f'end {{}} checkpoint: "{KEY}"', "end of the rounds; "),
        (["mute", "ID", "bo"], 'mute { agent_id: "bo" }', "mute of bo from the next round on"),
        (["unmute", "ID", "bo"], 'unmute { agent_id: "bo" }', "bo takes part again from the next round on"),
        (["cancel", "ID"], "cancel {}", "cancel; the debate ends without an answer"),
        (["cancel", "ID", "too dear"], 'cancel { reason: "too dear" }', "cancel; "),
        (["continue", "ID"], "continue_debate {}", "continue; the debate goes on from the checkpoint"),
        (["answer", "ID", "yes"], 'answer { text: "yes" }', "answer; the debate goes on from the checkpoint"),
        (["approve", "ID"], "approve { approved: true }", "approval; "),
        (["approve", "ID", "bad", "--no"], 'approve { text: "bad" }', "disapproval; "),
        (
            ["approve", "ID", "fine", "--checkpoint", KEY],
            f'approve {{ approved: true text: "fine" }} checkpoint: "{KEY}"',
            "approval; ",
        ),
    ],
)
def test_an_intervention_is_put_and_the_event_that_records_it_told(
    arguments: list[str],
    asked: str,
    said: str,
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [each.replace("ID", DEBATE_ID) for each in arguments]
    assert run([*given, "--server", orchestrator.address]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    assert line.startswith(f"Recorded as event 1: {said}")
    assert err == ""
    (intervention,) = orchestrator.interventions
    assert intervention.debate_id == DEBATE_ID
    assert intervention.request_id
    assert " ".join(str(intervention.intervention).split()) == asked.replace("{}", "{ }")


@pytest.mark.parametrize("now", [[], ["--now"]])
def test_a_pause_of_a_paused_debate_records_nothing_and_says_how_to_go_on(
    now: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert orchestrator.debate is not None
    orchestrator.debate.state.status = DEBATE_STATUS_PAUSED
    assert run(["pause", DEBATE_ID, *now, "--server", orchestrator.address]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line == (
        "Nothing recorded: the debate is paused already; to go on: "
        f"parley resume {DEBATE_ID} --server {orchestrator.address}"
    )
    assert orchestrator.interventions == []


def test_a_resume_says_where_the_debate_goes_on(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["resume", DEBATE_ID, "--server", orchestrator.address]) == 0
    told = f"Recorded as event 1: resume; the debate goes on at {orchestrator.address}\n"
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("arguments", "refusal", "code", "line"),
    [
        (
            ["continue", "ID", "--checkpoint", KEY],
            failed_precondition(
                "CHECKPOINT_CLOSED", "checkpoint c of debate d is not open; nothing was recorded"
            ),
            1,
            "checkpoint c of debate d is not open; nothing was recorded",
        ),
        (["pause", "ID"], failed_precondition("DEBATE_ENDED", "debate d has ended"), 1, "debate d has ended"),
        (
            ["mute", "ID", "zed"],
            invalid_argument(
                [
                    FieldViolation(
                        "intervention.mute.agent_id", "unknown agent 'zed'; agents of this debate: a"
                    )
                ]
            ),
            2,
            "unknown agent 'zed'; agents of this debate: a",
        ),
        (
            ["guide", "ID", " "],
            invalid_argument([FieldViolation("intervention.guide.text", "must not be blank")]),
            2,
            "TEXT must not be blank",
        ),
        (
            ["end", "ID", "--checkpoint", "A b"],
            invalid_argument([FieldViolation("intervention.checkpoint", "must be 1 to 256 characters")]),
            2,
            "--checkpoint: must be 1 to 256 characters",
        ),
        (
            ["answer", "ID", "yes"],
            ParleyError(grpc.StatusCode.DEADLINE_EXCEEDED, "", "Deadline Exceeded"),
            1,
            "no Parley has acted on this yet; it is recorded, and takes effect as soon as a Parley runs the debate",
        ),
    ],
)
def test_a_refusal_is_one_line_and_a_code(
    arguments: list[str],
    refusal: ParleyError,
    code: int,
    line: str,
    orchestrator: ScriptedOrchestrator,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrator.intervention_refusal = lambda request: refusal
    given = [each.replace("ID", DEBATE_ID) for each in arguments]
    assert run([*given, "--server", orchestrator.address]) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"parley: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["pause"], "missing argument 'ID'"),
        (["guide", DEBATE_ID], "missing argument 'TEXT'"),
        (["mute", DEBATE_ID], "missing argument 'AGENT'"),
        (["answer", DEBATE_ID], "give TEXT, or --to QUESTION TEXT; there is no terminal to ask on"),
        (["resume", "deb-nope"], "'deb-nope' is not a debate id; parley list shows them"),
        (["pause", DEBATE_ID, "--checkpoint", KEY], "no such option: --checkpoint"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"parley: {line}\n"


@pytest.mark.parametrize("server", [True, False], ids=["at a server", "on this machine"])
def test_a_debate_that_is_not_there_cannot_be_steered(
    server: bool, orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--server", orchestrator.address] if server else []
    assert run(["cancel", OTHER_ID, *at]) == 1
    assert capsys.readouterr().err == f"parley: debate '{OTHER_ID}' not found\n"


def test_the_help_lists_the_commands_that_steer_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    others, apart = capsys.readouterr().out.split("Commands that steer a debate:\n")
    steering = apart.partition("\n\n")[0]
    first = [line.split()[0] for line in steering.splitlines()]
    assert first == [
        "pause",
        "resume",
        "guide",
        "end",
        "mute",
        "unmute",
        "cancel",
        "continue",
        "answer",
        "approve",
    ]
    assert "  debate " in others
    assert "  pause " not in others


def wait_for_answer(debate: ScriptedDebate, opened: CheckpointOpened = DIRECTION) -> None:
    debate.add(opened, key=KEY)
    debate.state.status = DEBATE_STATUS_WAITING
    waits = debate.state.waiting
    waits.checkpoint, waits.message = KEY, "Go on?"
    match opened.WhichOneof("request"):
        case "questions":
            waits.questions.CopyFrom(opened.questions)
        case "direction":
            waits.direction.CopyFrom(opened.direction)
        case "approval":
            waits.approval.CopyFrom(opened.approval)
    debate.state.waiting.until.FromDatetime(datetime.now(UTC) + timedelta(minutes=30))


def test_whoever_looks_is_told_that_a_person_is_waited_for_and_how_to_answer(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert orchestrator.debate is not None
    wait_for_answer(orchestrator.debate)
    server = ["--server", orchestrator.address]
    with_server = f"{ANSWER_WITH} --server {orchestrator.address} {OR_ELSE}"
    assert run(["show", DEBATE_ID, *server]) == 0
    assert f"\nAnswer     {with_server}\n" in capsys.readouterr().out
    orchestrator.debate.conclude()
    assert run(["watch", DEBATE_ID, *server]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "1 waiting for a person until 00:00:00 UTC to say how to go on: Go on?"
    assert second == f"    answer with: {with_server}"


def test_whoever_holds_the_debate_is_told_how_to_answer(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def asks(debate: ScriptedDebate) -> None:
        wait_for_answer(debate)
        said = Intervention(guide=Guide(text="be\nbrief"))
        debate.add(CheckpointClosed(intervention=said), key=KEY)
        debate.conclude()

    orchestrator.script = asks
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 0
    told = capsys.readouterr().err
    assert (
        f"Waiting for a person; answer with: {ANSWER_WITH} --server {orchestrator.address} {OR_ELSE}\n"
        "a person said guide: be brief\n"
    ) in told


def test_a_debate_taken_up_again_at_an_open_checkpoint_says_how_to_answer(
    orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    def goes_on(debate: ScriptedDebate) -> None:
        debate.add(CONTINUED, key=KEY)
        debate.conclude()

    assert orchestrator.debate is not None
    wait_for_answer(orchestrator.debate, APPROVAL)
    orchestrator.after_resume = goes_on
    assert run(["debate", "--resume", DEBATE_ID, "--server", orchestrator.address]) == 0
    assert f"answer with: parley approve {DEBATE_ID} --checkpoint {KEY} --server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        ((), "Waiting for a person · 0:05 · 0 tokens"),
        ((Claimed(owner="b"),), "Waiting for a person · 0:05 · 0 tokens"),
        ((CONTINUED,), "Starting · 0:05 · 0 tokens"),
        ((CheckpointExpired(), Paused()), "Paused · 0:05 · 0 tokens"),
        ((Paused(), Resumed()), "Starting · 0:05 · 0 tokens"),
    ],
)
def test_the_status_line_says_that_a_person_is_waited_for(after: tuple[Message, ...], shown: str) -> None:
    progress = DebateProgress()
    for each in (DIRECTION, *after):
        progress = advance(progress, made_event(each, KEY))
    assert status_line(progress, 5) == shown


@pytest.mark.parametrize(
    ("opened", "asked", "hint"),
    [
        (DIRECTION, " to say how to go on: Go on?", f"{ANSWER_WITH} {OR_ELSE}"),
        (
            QUESTIONS,
            " to answer: Some things are unclear. (1) ada: Which scale? (2) How soon?",
            f"parley answer {DEBATE_ID} TEXT --checkpoint {KEY} (or continue)",
        ),
        (
            APPROVAL,
            " to approve: This team?",
            f"parley approve {DEBATE_ID} --checkpoint {KEY} (with --no: it is not approved)",
        ),
    ],
    ids=["direction", "questions", "approval"],
)
def test_a_checkpoint_names_what_is_asked_and_the_commands_that_close_its_kind(
    opened: CheckpointOpened, asked: str, hint: str
) -> None:
    assert list(event_lines(made_event(opened, KEY), DEBATE_ID, None)) == [
        f"1 waiting for a person until 00:00:00 UTC{asked}",
        f"    answer with: {hint}",
    ]


def test_a_disapproval_is_told_as_one() -> None:
    said = CheckpointClosed(intervention=Intervention(approve=Approve(text="too small")))
    assert list(event_lines(made_event(said, KEY), DEBATE_ID, None)) == [
        "1 a person said disapprove: too small"
    ]
