"""The commands and their options. What they do is in modules of their own, imported when asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from parley.cli.administration import STORAGE_COMMANDS, SYSTEM_COMMANDS
from parley.cli.agents import AGENT_COMMANDS
from parley.cli.command_group import CommandGroup
from parley.cli.command_name import COMPLETION_VARIABLE
from parley.cli.execute import execute
from parley.cli.hooks import hooks
from parley.cli.input.parameters import (
    HOOK_ID,
    Address,
    Count,
    DebateId,
    FormatOption,
    Pair,
    Speed,
    debate_argument,
    json_option,
    label_option,
    server_option,
    trust_option,
)
from parley.cli.printing import STYLES, print_text
from parley.cli.receipts import RECEIPT_COMMANDS
from parley.cli.remembering import memory
from parley.cli.steering import STEERING_COMMANDS

_PATH = click.Path(path_type=Path)
_LISTED = 50
"""Debates in a list at most, by default."""


class _Commands(CommandGroup):
    """All commands; the help lists those apart that steer a debate, and those that keep and remove debates."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write three lists of commands."""
        steering, keeping = (
            [str(each.name) for each in part] for part in (STEERING_COMMANDS, STORAGE_COMMANDS)
        )
        others = [name for name in self.list_commands(ctx) if name not in {*steering, *keeping}]
        for title, names in (
            ("Commands", others),
            ("Commands that steer a debate", steering),
            ("Commands that keep and remove debates", keeping),
        ):
            self.write_commands(formatter, title, names)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="parley", message="parley %(version)s")
def parley() -> None:
    """Ask several AI agents that debate a question, and get an answer with a trace."""


@parley.command()
@click.argument("question", required=False)
@click.option(
    "-p",
    "--problem-description",
    "--problemDescription",
    metavar="FILE",
    type=_PATH,
    help="Read the question from a file.",
)
@click.option("-a", "--agents", metavar="A,B", help="Roles or ids of the agents that debate.")
@click.option("--format", cls=FormatOption, metavar="NAME")
@click.option(
    "--model",
    metavar="NAME",
    help="The model of all agents: a route, PROVIDER/MODEL, or one of the first provider.",
)
@click.option("-r", "--rounds", type=Count(100), metavar="N", help="Rounds. Default: the format's.")
@click.option(
    "--effort",
    type=click.Choice(["quick", "standard", "thorough"]),
    help="How much is asked: drafts alone, rounds as long as something is disputed, or all rounds. Format panel.",
)
@click.option(
    "--protocol",
    type=click.Choice(["adversarial", "collaborative", "socratic"]),
    help="How agents argue. Format arena.",
)
@click.option(
    "--topology",
    type=click.Choice(["all-to-all", "round-robin", "ring", "star", "sparse"]),
    help="Who criticizes whom. Format arena.",
)
@click.option(
    "--voting",
    type=click.Choice(["majority", "supermajority", "unanimous", "weighted"]),
    help="How much of the votes wins. Format arena.",
)
@click.option(
    "--sequential/--no-sequential",
    default=None,
    help="Ask the best rated agents first, and others only while no position is probable enough. Format arena.",
)
@click.option(
    "--team",
    type=Count(32),
    metavar="N",
    help="Let N of the agents debate, selected by their ratings. Format arena.",
)
@click.option(
    "--trickster/--no-trickster", default=None, help="Challenge agreement that is hollow. Format arena."
)
@click.option(
    "--observer/--no-observer",
    default=None,
    help="Mark rhetorical patterns and fallacies in contributions. Format arena.",
)
@click.option(
    "--perspectives",
    type=Count(4, 2),
    metavar="N",
    help="Debaters. Default: the moderator decides. Format moderated.",
)
@click.option("--max-rounds", type=Count(20), metavar="N", help="As --rounds. Format moderated.")
@click.option(
    "--checkpoints/--no-checkpoints",
    default=None,
    help="Ask you after each round, and to approve the decision. Default: on a terminal. Format moderated.",
)
@click.option(
    "-c",
    "--config",
    metavar="FILE",
    type=_PATH,
    help="Agents, judge and settings. Default: ./parley.yaml, then ./debate-config.json.",
)
@click.option(
    "--context",
    metavar="DIR_OR_FILE",
    type=_PATH,
    help="Text files that the agents may read: all below a folder, or one.",
)
@click.option(
    "--fact",
    "facts",
    metavar="NAME=VALUE",
    type=Pair("team=Payments"),
    multiple=True,
    help="A fact about the situation, which every agent is shown; may be given several times.",
)
@click.option(
    "--research/--no-research",
    default=None,
    help="Read the web and ask tools before the agents begin, if the operator allows it. Default: the file's, else yes.",
)
@click.option(
    "--page",
    "pages",
    metavar="URL",
    multiple=True,
    help="A page that is read for the agents, if the operator allows it; may be given several times.",
)
@click.option(
    "--clarify/--no-clarify",
    default=None,
    help="Let the agents ask questions before they begin; you answer on the terminal. Default: the file's.",
)
@click.option("--no-history", is_flag=True, help="Show the agents no past debates on like questions.")
@click.option("--no-patterns", is_flag=True, help="Show the agents no issues that past debates raised.")
@click.option("--no-knowledge", is_flag=True, help="Show past debates without what their decisions rest on.")
@click.option("--max-output-tokens", type=Count(1_000_000), metavar="N", help="Bound one contribution.")
@click.option(
    "--context-tokens",
    type=Count(100_000_000, 256),
    metavar="N",
    help="Tokens that prompt and answer of a model may have together. Default: what is known of it.",
)
@click.option(
    "--hook",
    "hooks",
    metavar="ID",
    type=HOOK_ID,
    multiple=True,
    help="A hook that is told of this debate (parley hooks list); may be given several times.",
)
@label_option("A label by which the debate is found later; may be given several times.")
@click.option(
    "-o", "--output", metavar="FILE", type=_PATH, help="Write the answer, or with .json the whole debate."
)
@click.option("--report", metavar="FILE", type=_PATH, help="Write a Markdown report too.")
@click.option(
    "--resume",
    metavar="ID",
    type=DebateId(),
    help="Resume a debate that was paused or interrupted, or that failed.",
)
@click.option("--list", "list_debates", is_flag=True, help="List debates like parley list, and exit.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Print contributions, tokens and times round by round at the end."
)
@click.option("-q", "--quiet", is_flag=True, help="Show progress as lines: --progress lines.")
@click.option(
    "--progress",
    type=click.Choice(STYLES),
    help="How progress is shown. Default: live on a terminal, one line per event elsewhere.",
)
@server_option
@trust_option
def debate(question: str | None, **options: Any) -> int:
    """Run a debate and print its answer.

    QUESTION may be -, or left out in a pipe: it is read from stdin then.
    """
    from parley.cli.input.debate_request import DebateOptions, check_list_options

    given = DebateOptions(**options)
    if given.list_debates:
        from parley.cli.commands import debates

        check_list_options(question, given)
        execute(
            debates.list_debates(
                given.server, _LISTED, as_json=False, format_name=given.format, labels=given.labels
            )
        )
        return 0
    from parley.cli.commands.debate import run_debate

    return run_debate(question, given)


@parley.command("eval")
@debate_argument
@click.option("-a", "--agents", metavar="A,B", help="Roles or ids of the agents that judge.")
@click.option(
    "--model",
    metavar="NAME",
    help="The model of all agents: a route, PROVIDER/MODEL, or one of the first provider.",
)
@click.option(
    "-c",
    "--config",
    metavar="FILE",
    type=_PATH,
    help="Evaluators, or a configuration as for debate. Default: ./parley.yaml, then ./debate-config.json.",
)
@click.option("--proposals", is_flag=True, help="Show the final proposals to the evaluators too.")
@click.option("--max-output-tokens", type=Count(1_000_000), metavar="N", help="Bound one evaluator's answer.")
@click.option(
    "--format",
    type=click.Choice(["markdown", "json", "csv"]),
    help="How it is printed or written. Default: as the output's name ends, else markdown.",
)
@click.option("-o", "--output", metavar="FILE", type=_PATH, help="Write it to a file.")
@click.option("-v", "--verbose", is_flag=True, help="Print contributions, tokens and times at the end.")
@server_option
@trust_option
def evaluate(**options: Any) -> int:
    """Let agents judge the answer of a finished debate."""
    from parley.cli.commands.evaluation import run_evaluation
    from parley.cli.input.evaluation_request import EvaluationOptions

    return run_evaluation(EvaluationOptions(**options))


@parley.command()
@click.option(
    "--speed",
    type=Speed(),
    default=1.0,
    metavar="N",
    help="Play it N times as fast. Default: 1, some ten seconds; in a pipe, at once.",
)
@click.option("--report", is_flag=True, help="Print the report as Markdown, instead of playing the debate.")
def demo(speed: float, report: bool) -> None:  # noqa: FBT001
    """Play an example debate: no key, no model, ten seconds."""
    from parley.cli.commands import demo

    if report:
        demo.print_report()
    else:
        demo.play(speed)


@parley.command("list")
@click.option("--limit", type=Count(10_000), default=_LISTED, show_default=True, help="Debates at most.")
@label_option("Only debates with this label; several: with all of them.")
@json_option
@server_option
def list_debates(limit: int, labels: Sequence[tuple[str, str]], as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """List debates, newest first."""
    from parley.cli.commands import debates

    execute(debates.list_debates(server, limit, as_json=as_json, labels=labels))


@parley.command()
@debate_argument
@json_option
@server_option
def show(debate_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Show the state of a debate, and its answer."""
    from parley.cli.commands import debates

    execute(debates.show(server, debate_id, as_json=as_json))


@parley.command()
@debate_argument
@click.argument("word", type=click.Choice(["up", "down"]))
@click.option("-m", "--message", default="", metavar="TEXT", help="Why.")
@json_option
@server_option
def feedback(debate_id: str, word: str, message: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Record whether a finished debate was good; the latest feedback counts."""
    from parley.cli.commands.debates import submit_feedback

    execute(submit_feedback(server, debate_id, 1 if word == "up" else -1, message, as_json=as_json))


@parley.command()
@debate_argument
@click.option("--after", type=Count(10**9, 0), default=0, metavar="N", help="Only events after event N.")
@click.option("-q", "--quiet", is_flag=True, help="One line per event, without contributions.")
@click.option("--json", "as_json", is_flag=True, help="Each event as one line of JSON.")
@server_option
def watch(debate_id: str, after: int, quiet: bool, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Follow a debate, event by event and contribution by contribution."""
    from parley.cli.commands import debates

    execute(debates.watch(server, debate_id, after, quiet=quiet, as_json=as_json))


@parley.command()
@debate_argument
@click.option("-o", "--output", metavar="FILE", type=_PATH, help="Write it to a file.")
@click.option("--html", "as_html", is_flag=True, help="As one HTML file that needs nothing else.")
@server_option
def report(debate_id: str, output: Path | None, as_html: bool, server: str | None) -> None:  # noqa: FBT001
    """Print a debate's report as Markdown."""
    from parley.cli.commands import debates

    execute(debates.report(server, debate_id, output, as_html=as_html))


@parley.command()
@debate_argument
@json_option
@server_option
def analysis(debate_id: str, as_json: bool, server: str | None) -> None:  # noqa: FBT001
    """Show what the answer of a debate rests on, and where its agents disagree."""
    from parley.cli.commands import debates

    execute(debates.show_analysis(server, debate_id, as_json=as_json))


@parley.command()
@click.option("-c", "--config", metavar="FILE", type=_PATH, help="As for debate.")
@click.option(
    "--port",
    type=Count(65531, 2),
    default=7401,
    show_default=True,
    metavar="N",
    help="The orchestrator's port; the other services take the four after it, and the edge the one before it.",
)
@click.option(
    "--advertise",
    metavar="ADDRESS",
    type=Address(),
    help="HOST:PORT at which other orchestrators reach this one. Default: the address it listens on.",
)
@trust_option
def up(config: Path | None, port: int, advertise: str | None) -> None:
    """Run the whole system on loopback ports until stopped."""
    from parley.cli.commands.serve import serve_all

    execute(serve_all(config, port, advertise))


@parley.command()
@click.option("-c", "--config", metavar="FILE", type=_PATH, help="As for debate.")
@server_option
@trust_option
def mcp(config: Path | None, server: str | None) -> None:
    """Offer debates to an MCP client, such as Claude Code, over stdin and stdout."""
    from parley.cli.commands.mcp import serve_mcp

    execute(serve_mcp(server, config))


@parley.command()
@click.argument("service")
def serve(service: str) -> None:
    """Run one service in this process: orchestrator, gateway, convergence, ratings, memory or edge.

    Its settings are PARLEY_ variables; docs/guides/processes.md sets up all six.
    """
    from parley.cli.commands.serve import serve_one

    serve_one(service)


@parley.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: source it in the shell's start file."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    print_text(f"{script(parley, {}, 'parley', COMPLETION_VARIABLE).source()}\n")


@parley.command("config-schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration file."""
    from importlib.resources import files

    print_text(files("parley.config").joinpath("schema.json").read_text("utf-8"))


for _command in (
    *AGENT_COMMANDS,
    *RECEIPT_COMMANDS,
    *STEERING_COMMANDS,
    *STORAGE_COMMANDS,
    *SYSTEM_COMMANDS,
    memory,
    hooks,
):
    parley.add_command(_command)
