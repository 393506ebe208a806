"""`python -P -m parley.orchestrator.create_key NAME`: create an API key in the store of PARLEY_STORE, and print it, this once.

It makes the first key of an installation: an image of the orchestrator has no `parley` command, and no caller has a key yet.
"""

import argparse
import re
import sys

from parley.orchestrator.audit.key_store import open_keys
from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.clock import SystemClock
from parley.runtime.entry import run
from parley.runtime.identity.identity import DEFAULT_TENANT, is_tenant
from parley.runtime.identity.roles import CLIENT_ROLES, role_name, roles_by_name


async def main() -> int:
    """Create a key, print it on stdout and its id on stderr."""
    given = _parse_arguments()
    settings = OrchestratorSettings.load()
    async with open_keys(settings.store, settings.wrapping_keys()) as keys:
        key, text = await keys.add(given.tenant, given.name, roles_by_name(given.role), SystemClock().now())
    sys.stdout.write(f"{text}\n")
    sys.stderr.write(f"Key {key.id} of tenant {key.tenant}; it is not shown again.\n")
    return 0


def _parse_arguments() -> argparse.Namespace:
    roles = sorted(map(role_name, CLIENT_ROLES))
    parser = argparse.ArgumentParser(
        prog="python -P -m parley.orchestrator.create_key",
        description="Create an API key, and print it, this once.",
    )
    parser.add_argument("name", type=_name, help="whose it is, for people: 1 to 64 characters on one line")
    parser.add_argument("--tenant", type=_tenant, default=DEFAULT_TENANT, help="whose debates it is for")
    parser.add_argument(
        "--role",
        action="append",
        choices=roles,
        default=None,
        help="what it may do (default: admin, which is all)",
    )
    given = parser.parse_args()
    given.role = given.role or ["admin"]
    return given


def _name(text: str) -> str:
    if not re.fullmatch(r"\S(.{0,62}\S)?", text) or not text.isprintable():
        raise argparse.ArgumentTypeError("must be 1 to 64 characters on one line")
    return text


def _tenant(text: str) -> str:
    if not is_tenant(text):
        raise argparse.ArgumentTypeError(
            "must be 1 to 64 characters of A-Z a-z 0-9 . _ -, and begin with a letter or digit"
        )
    return text


if __name__ == "__main__":
    sys.exit(run(main))
