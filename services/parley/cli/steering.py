"""The commands that steer a debate, and their options."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from parley.cli.execute import execute
from parley.cli.input.parameters import debate_argument, server_option_with

if TYPE_CHECKING:  # heavy: help needs none of it
    from parley.cli.commands.intervene import Intervention

_server = server_option_with("the Parley that runs on this machine")
_checkpoint = click.option(
    "--checkpoint", metavar="KEY", default="", help="The key of the checkpoint. Default: the open one."
)


@click.command()
@debate_argument
@click.option("--now", is_flag=True, help="Stop the calls in flight. Default: wait for them.")
@_server
def pause(debate_id: str, now: bool, server: str | None) -> None:  # noqa: FBT001
    """Make no new call until the debate is resumed."""
    from parley.cli.commands import intervene

    execute(intervene.pause_debate(server, debate_id, stop_calls=now))


@click.command()
@debate_argument
@_server
def resume(debate_id: str, server: str | None) -> None:
    """Resume after a pause or a failure, in the running Parley."""
    from parley.cli.commands import intervene

    execute(intervene.resume_debate(server, debate_id))


@click.command()
@debate_argument
@click.argument("text")
@_checkpoint
@_server
def guide(debate_id: str, text: str, checkpoint: str, server: str | None) -> None:
    """Give guidance to the next round, or to the answer."""
    _intervene(
        server,
        debate_id,
        "guidance; the next round gets it, or the answer if no round is left",
        lambda parley, found: parley.guide(found, text, checkpoint=checkpoint),
    )


@click.command()
@debate_argument
@_checkpoint
@_server
def end(debate_id: str, checkpoint: str, server: str | None) -> None:
    """Go to the answer after the current round."""
    _intervene(
        server,
        debate_id,
        "end of the rounds; the answer comes after the current one",
        lambda parley, found: parley.end_rounds(found, checkpoint=checkpoint),
    )


@click.command()
@debate_argument
@click.argument("agent")
@_server
def mute(debate_id: str, agent: str, server: str | None) -> None:
    """Leave an agent out from the next round on."""
    _intervene(
        server,
        debate_id,
        f"mute of {agent} from the next round on",
        lambda parley, found: parley.mute(found, agent),
    )


@click.command()
@debate_argument
@click.argument("agent")
@_server
def unmute(debate_id: str, agent: str, server: str | None) -> None:
    """Let a muted agent take part again from the next round on."""
    _intervene(
        server,
        debate_id,
        f"{agent} takes part again from the next round on",
        lambda parley, found: parley.unmute(found, agent),
    )


@click.command()
@debate_argument
@click.argument("reason", default="")
@_server
def cancel(debate_id: str, reason: str, server: str | None) -> None:
    """Stop calls in flight and end the debate without an answer."""
    _intervene(
        server,
        debate_id,
        "cancel; the debate ends without an answer",
        lambda parley, found: parley.cancel(found, reason),
    )


@click.command("continue")
@debate_argument
@_checkpoint
@_server
def go_on(debate_id: str, checkpoint: str, server: str | None) -> None:
    """Continue from the open checkpoint."""
    _intervene(
        server,
        debate_id,
        "continue; the debate goes on from the checkpoint",
        lambda parley, found: parley.continue_debate(found, checkpoint=checkpoint),
    )


@click.command()
@debate_argument
@click.argument("text", required=False)
@click.option(
    "--to",
    "answers",
    metavar="QUESTION TEXT",
    type=(str, str),
    multiple=True,
    help="Answer one question, by its number or id; may be given several times.",
)
@click.option("--enough", is_flag=True, help="Ask nothing more: the debate begins.")
@_checkpoint
@_server
def answer(
    debate_id: str,
    text: str | None,
    answers: tuple[tuple[str, str], ...],
    enough: bool,  # noqa: FBT001
    checkpoint: str,
    server: str | None,
) -> None:
    """Answer the questions of the open checkpoint.

    TEXT answers all questions; without TEXT and --to, they are asked one by one on the terminal.
    """
    from parley.cli.commands.intervene import AnswerOptions, answer_questions

    _intervene(
        server,
        debate_id,
        "answer; the debate goes on from the checkpoint",
        answer_questions(AnswerOptions(text, answers, enough, checkpoint)),
    )


@click.command()
@debate_argument
@click.argument("text", default="")
@click.option("--no", "disapproved", is_flag=True, help="Do not approve it.")
@_checkpoint
@_server
def approve(debate_id: str, text: str, disapproved: bool, checkpoint: str, server: str | None) -> None:  # noqa: FBT001
    """Approve what the open checkpoint shows, or not."""
    value = "disapproval" if disapproved else "approval"
    _intervene(
        server,
        debate_id,
        f"{value}; the debate goes on from the checkpoint",
        lambda parley, found: parley.approve(found, text, approved=not disapproved, checkpoint=checkpoint),
    )


STEERING_COMMANDS: Final[Sequence[click.Command]] = (
    pause,
    resume,
    guide,
    end,
    mute,
    unmute,
    cancel,
    go_on,
    answer,
    approve,
)
"""In the order of the help."""


def _intervene(server: str | None, debate_id: str, recorded: str, intervention: "Intervention") -> None:
    from parley.cli.commands import intervene

    execute(intervene.intervene(server, debate_id, recorded, intervention))
