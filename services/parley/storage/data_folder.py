"""Which folder PARLEY_STORE names, and who uses it. A command that finds a running system imports nothing else of the stores."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from parley.storage.folder_lock import describe_holders, is_shared

DATABASE: Final = "parley.db"
"""The file of all services in a data folder. Each has tables of its own in it."""
STORING: Final = ("orchestrator", "gateway", "ratings", "memory")
"""The services that have a database."""
_SQLITE: Final = "sqlite:///"
_MONGODB: Final = ("mongodb://", "mongodb+srv://")
_STORE_HELP: Final = "PARLEY_STORE must be sqlite:///FOLDER or mongodb://HOST[:PORT][/PREFIX]"


def sqlite_folder(url: str) -> Path | None:
    """Return the data folder that the URL names, or None if the store is a server.

    `sqlite:///data` is relative to the working directory, `sqlite:////var/lib/parley` is absolute, `~` is home.

    Raises:
        ValueError: the URL is neither.
    """
    if url.startswith(_MONGODB):
        return None
    if not url.startswith(_SQLITE):
        raise ValueError(f"{_STORE_HELP}, not {_hide_password(url)}")
    path = unquote(url.removeprefix(_SQLITE))
    if not path or "\0" in path:
        raise ValueError(f"PARLEY_STORE names no folder in {url!r}; write sqlite:///FOLDER")
    folder = Path(path).expanduser()
    if folder.is_file():
        raise ValueError(f"PARLEY_STORE names the file {folder}; it must be a folder")
    return folder


def in_use_message(folder: Path, name: str = "parley.lock") -> str:
    """Return a message that names the holders of a folder, and what to do."""
    what = (
        "talk to its orchestrator with --server, or stop it first" if is_shared(folder) else "stop that first"
    )
    return f"PARLEY_STORE: {folder} is in use by {describe_holders(folder, name)}; {what}, or name another folder"


def _hide_password(url: str) -> str:
    """Return the URL without a possible password."""
    scheme, found, rest = url.partition("://")
    return repr(f"{scheme}://{rest.rpartition('@')[2]}") if found else repr(url)
