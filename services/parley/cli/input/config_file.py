"""The configuration file that a command uses."""

from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.printing import say
from parley.cli.working_folder import is_known_as_trusted, is_trusted, load_dotenv
from parley.config.file import ConfigFile
from parley.runtime.errors import ConfigurationError

DEFAULT_FILES: Final = ("parley.yaml", "debate-config.json")


def find_config(given: Path | None, *, evaluators: bool = False) -> ConfigFile | None:
    """Return the file that was given, else the first default file that is there, else None.

    A default file is named on stderr; unless it is trusted, it may not choose who is asked, nor name a file outside. A file that was
    given is trusted. Load the keys that it names from `.env`. With `evaluators`, it may list evaluators and no agents.
    """
    path = given or next((Path(name) for name in DEFAULT_FILES if Path(name).exists()), None)
    if path is None:
        return None
    if given is None:
        say(f"Using {path} of this folder.")
    from parley.config.loading import loads, read  # heavy: many commands find no file

    text = read(path)
    found = loads(text, str(path), path.parent, evaluators=evaluators)
    if given is None and found.reaching:
        _require_trust(path, text, found)
    load_dotenv({each.api_key_env for each in found.providers if each.api_key_env is not None})
    return found


def read_found_config(path: Path) -> ConfigFile:
    """Read a file that was found, again. No person is asked for trust now, so what needs it must be trusted already.

    Raise ConfigurationError.
    """
    from parley.config.loading import loads, read

    text = read(path)
    found = loads(text, str(path), path.parent)
    if found.reaching and not is_known_as_trusted(path, _trusted_content(text, found)):
        raise ConfigurationError(
            f"{path} has changed and is not trusted as it is now: {found.reaching[0]}; read it, then start parley up --config {path}, "
            "or with --trust-config"
        )
    return found


def _trusted_content(text: str, found: ConfigFile) -> str:
    """Return what a yes is for. What a file reaches counts as content: a file of the folder may later become a link out of it."""
    return "\0".join([text, *found.reaching])


def _require_trust(path: Path, text: str, found: ConfigFile) -> None:
    if is_trusted(path, _trusted_content(text, found), found.reaching):
        return
    raise CommandError(
        f"{found.reaching[0]}: {path} was found in this folder and is not trusted, so it must not name a provider, a key or a file "
        f"outside; read it, then use --trust-config or --config {path}",
        CONFIGURATION,
    )
