"""`python -P -m parley.storage.rewrap SERVICE`: wrap the data keys of a service's database by the first key of PARLEY_ENCRYPTION_KEYS.

It is for a pod of the service, which has its settings; its image has no `parley` command.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping

from parley.runtime.entry import run
from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.storage.data_folder import STORING
from parley.storage.encryption.data_keys import Rewrapping
from parley.storage.encryption.wrapping import WrappingKeys
from parley.storage.opening import refuse_unusable_store, rewrap_data_keys
from parley.storage.settings import StoreSettings


def read_keys() -> WrappingKeys:
    """Return the operator's keys. Raise ConfigurationError if none is set, or one cannot be used."""
    wrapping = StoreSettings.load().wrapping_keys()
    if not wrapping:
        raise ConfigurationError(
            "PARLEY_ENCRYPTION_KEYS: is not set, so there is no key to wrap by; name the file that holds it"
        )
    return wrapping


def describe_rewrapping(done: Mapping[str, Rewrapping]) -> Iterator[str]:
    """Yield a line for each service. Raise PartFailedError after them if there are damaged keys, which names the services."""
    for service, each in done.items():
        yield f"{service}: {_count_keys(each.wrapped)} wrapped anew"
    if damaged := [
        f"{_count_keys(each.unreadable)} of {name}" for name, each in done.items() if each.unreadable
    ]:
        raise PartFailedError(f"{', '.join(damaged)} cannot be read; restore the database from a backup")


def _count_keys(count: int) -> str:
    return f"{count} key{'' if count == 1 else 's'}"


async def main() -> None:
    """Wrap the data keys of one database anew, and print how many that were. Raise PartFailedError if some are damaged."""
    parser = argparse.ArgumentParser(
        prog="python -P -m parley.storage.rewrap",
        description="Wrap the data keys of a service's database by the first key of PARLEY_ENCRYPTION_KEYS.",
    )
    parser.add_argument("service", choices=STORING)
    service = parser.parse_args().service
    with refuse_unusable_store():
        done = await rewrap_data_keys(StoreSettings.load().store, service, read_keys())
    for line in describe_rewrapping({service: done}):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(run(main))
