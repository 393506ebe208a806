"""The configuration file that a command uses."""

from pathlib import Path
from typing import Final

from parley import config
from parley.cli.dotenv_file import take_dotenv
from parley.config import ConfigFile

__all__ = ["DEFAULT_FILES", "find_config"]

DEFAULT_FILES: Final = ("parley.yaml", "debate-config.json")


def find_config(given: Path | None, *, evaluators: bool = False) -> ConfigFile | None:
    """Return the file that was given, else the first default file that is there, else None.

    Take the keys that it names from `.env`. With `evaluators`, it may also list evaluators alone.
    """
    path = given or next((Path(name) for name in DEFAULT_FILES if Path(name).exists()), None)
    if path is None:
        return None
    found = config.load(path, evaluators=evaluators)
    take_dotenv({each.api_key_env for each in found.providers if each.api_key_env is not None})
    return found
