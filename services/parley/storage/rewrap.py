"""`python -P -m parley.storage.rewrap SERVICE`: wrap the data keys of a service's database by the first key of PARLEY_ENCRYPTION_KEYS.

It is for a pod of the service, which has its settings; its image has no `parley` command.
"""

import argparse
import sys

from parley.runtime.entry import run
from parley.runtime.errors import ConfigurationError
from parley.storage.encryption.wrapping import WrappingKeys
from parley.storage.opening import refuse_unusable_store, rewrap_data_keys
from parley.storage.settings import StoreSettings

STORING = ("orchestrator", "gateway", "ratings", "memory")
"""The services that have a database."""


def read_keys() -> WrappingKeys:
    """Return the operator's keys. Raise ConfigurationError if none is set, or one cannot be used."""
    wrapping = StoreSettings.load().wrapping_keys()
    if not wrapping:
        raise ConfigurationError("PARLEY_ENCRYPTION_KEYS: is not set, so there is no key to wrap by")
    return wrapping


async def main() -> None:
    """Wrap the data keys of one database anew, and print how many that were."""
    parser = argparse.ArgumentParser(
        prog="python -P -m parley.storage.rewrap",
        description="Wrap the data keys of a service's database by the first key of PARLEY_ENCRYPTION_KEYS.",
    )
    parser.add_argument("service", choices=STORING)
    service = parser.parse_args().service
    with refuse_unusable_store():
        count = await rewrap_data_keys(StoreSettings.load().store, service, read_keys())
    sys.stdout.write(f"{service}: {count} key{'' if count == 1 else 's'} wrapped anew\n")


if __name__ == "__main__":
    sys.exit(run(main))
