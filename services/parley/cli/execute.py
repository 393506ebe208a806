"""How the commands are run."""

from collections.abc import Coroutine
from typing import Any

from parley.cli.working_folder import load_dotenv


def execute(main: Coroutine[Any, Any, None]) -> None:
    """Run what a command does, with the keys of `.env`. Raise CommandError."""
    import asyncio

    from parley.cli.translate_errors import translate_errors

    with translate_errors():
        load_dotenv()
        asyncio.run(main)
