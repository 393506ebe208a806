"""The entry of the `parley` command."""

import os
import sys
from collections.abc import Sequence

import click

from parley.cli.failures import GENERAL, INTERRUPTED, INVALID_ARGUMENTS, CommandError, one_line

__all__ = ["main", "run"]


def main() -> None:
    """Runs the command line of this process and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:  # noqa: PLR0911 (a return an ending)
    """Runs a command line and returns its exit code; what goes wrong is one line on stderr."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's own log would stand between our lines
    from parley.cli.app import parley

    try:
        code = parley.main(list(arguments), "parley", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        return _fail(_usage(error), INVALID_ARGUMENTS)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except CommandError as error:
        return _fail(str(error), error.code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has had enough
        sys.stderr.close()
        return GENERAL
    except OSError as error:
        return _fail(str(error), GENERAL)
    except Exception as error:
        if os.environ.get("PARLEY_TRACEBACK"):
            raise
        name = type(error).__name__
        return _fail(f"internal error: {name}: {error} (PARLEY_TRACEBACK=1 shows where)", GENERAL)
    return code if isinstance(code, int) else 0


def _usage(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        hint = f"; did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
        return f"no such option: {error.option_name}{hint}"
    message = error.format_message().rstrip(".")
    return f"{message[0].lower()}{message[1:]}" if message else "invalid arguments"


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"parley: {one_line(message)}\n")
    return code


if __name__ == "__main__":
    main()
