"""The agents file: what it says with the settings, at the start and after each change."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from parley.config.default import DEFAULT
from parley.config.file import ConfigFile
from parley.gateway.plan import Offers, Plan, plan, roster
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.servicer import GatewayServicer
from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class AgentsFile:
    """The file that says what the gateway offers, and what is needed to read it.

    Attributes:
        read: Reads the file.
        environment: The variables that hold the keys which the file names.
        kinds: The kinds of providers that the file may name.
    """

    settings: GatewaySettings
    read: Callable[[], ConfigFile]
    environment: Mapping[str, str]
    kinds: Mapping[str, ProviderKind]

    async def load(self) -> tuple[ConfigFile, Plan]:
        """Return what the file says, and the plan that it makes with the settings.

        Raises:
            ConfigurationError: the file or a key in it cannot be used.
        """
        config = await asyncio.to_thread(self.read)
        return config, await asyncio.to_thread(plan, self.settings, config, self.environment, self.kinds)


@dataclass(slots=True)
class AgentsFileChange:
    """Takes over a changed file while the gateway runs.

    Attributes:
        key_files: Files of keys; the file that was taken over last names them.
    """

    file: AgentsFile
    offers: Offers
    servicer: GatewayServicer
    key_files: list[Path]

    async def apply(self) -> None:
        """Read the file and take all of it over.

        Raises:
            ConfigurationError: it cannot be used, is empty or leaves no provider; nothing was changed.
        """
        servicer, path = self.servicer, self.file.settings.agents_file
        config, chosen = await self.file.load()
        if config.empty:  # as it is for a moment while it is written
            raise ConfigurationError(f"{path}: is empty")
        if not chosen.providers and servicer.table.open_providers and not servicer.found:
            raise ConfigurationError(f"{path}: leaves no provider; name one, or set the variable of its key")
        agents = roster(config)
        if chosen.providers:
            servicer.table.replace(await self.offers.create(chosen))
            servicer.found, servicer.ignored_model = (), ""
        servicer.roster = agents
        self.key_files = list_key_files(config)


def read_file(path: Path | None, *, evaluators: bool) -> ConfigFile:
    """Return what the file says, or the default where there is none; `evaluators`: it may list evaluators alone."""
    if path is None:
        return DEFAULT
    from parley.config.loading import load  # heavy, as all that reads: many gateways have no file

    return load(path, evaluators=evaluators)


def list_key_files(config: ConfigFile) -> list[Path]:
    """Return the files of keys that the file names."""
    return [each.api_key_file for each in config.providers if each.api_key_file is not None]
