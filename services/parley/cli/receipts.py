"""The commands about receipts, and their options."""

from pathlib import Path
from typing import Final

import click

from parley.cli.execute import execute
from parley.cli.input.parameters import debate_argument, server_option

_PATH: Final = click.Path(path_type=Path)


@click.command()
@debate_argument
@click.option("-o", "--output", metavar="FILE", type=_PATH, help="Write it to this file.")
@server_option
def receipt(debate_id: str, output: Path | None, server: str | None) -> None:
    """Print the signed receipt of a completed debate."""
    from parley.cli.commands.receipts import print_receipt

    execute(print_receipt(server, debate_id, output))


@click.command()
@click.argument("file", metavar="FILE", type=_PATH)
@click.option("--log", metavar="FILE", type=_PATH, help="The debate's log. Default: the one that Parley has.")
@click.option("--answer", metavar="FILE", type=_PATH, help="Also check that this text is the answer.")
@click.option(
    "--keys",
    metavar="FILE",
    type=_PATH,
    help="Public keys that you trust: a list (JWKS), or one in PEM; Parley is then not asked. Default: its own keys.",
)
@server_option
def verify(file: Path, log: Path | None, answer: Path | None, keys: Path | None, server: str | None) -> None:
    """Check a receipt, or the archive of an export: who signed it, and that log and answer are as they were signed."""
    from parley.cli.commands.receipts import Evidence, verify_file

    execute(verify_file(server, Evidence(file, log, answer, keys)))


RECEIPT_COMMANDS: Final = (receipt, verify)
