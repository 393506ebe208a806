"""The settings of a service that stores."""

import os
import shlex

from pydantic import Field, field_validator

from parley.runtime.comma_lists import split_list
from parley.runtime.errors import ConfigurationError
from parley.runtime.settings import ServiceSettings
from parley.storage.encryption.wrapping import WrappingKeys, read_wrapping_keys


class StoreSettings(ServiceSettings):
    """Where a service stores, and the operator's keys that encrypt it."""

    store: str = Field(
        default="sqlite:///parley-data", description="sqlite:///FOLDER or mongodb://HOST[:PORT][/PREFIX]."
    )
    encryption_keys: str = Field(
        default="",
        description="FILE,… of 32 random bytes in base64, which wrap the keys of stored data: the first wraps, all unwrap. The word `command` "
        "stands for the next setting. Unset, as is that: nothing is encrypted.",
    )
    encryption_command: str = Field(
        default="",
        description="Program that wraps them instead, with its options, run without a shell: with `wrap` or `unwrap` as the last argument, "
        "and base64 at its input and output. It comes first unless PARLEY_ENCRYPTION_KEYS names its place by the word `command`.",
    )
    encryption_seconds: float = Field(
        default=10.0, gt=0, le=60, description="Seconds that a run of this program may take."
    )

    @field_validator("encryption_command")
    @classmethod
    def _check_command(cls, command: str) -> str:
        try:
            shlex.split(command)
        except ValueError:
            raise ValueError("has a quotation mark that is not closed") from None
        return command

    def require_store(self) -> str:
        """Return the store of a service in a process of its own.

        Raise ConfigurationError if PARLEY_STORE is empty, as of a Secret without its URL: a pod would lose what it wrote into a
        folder of its own.
        """
        if os.environ.get("PARLEY_STORE") == "":
            raise ConfigurationError(
                "PARLEY_STORE: is empty; name a store, as in mongodb://HOST/?replicaSet=NAME, or leave it unset for a folder here"
            )
        return self.store

    def wrapping_keys(self) -> WrappingKeys:
        """Return the operator's keys. Raise ConfigurationError if one cannot be used."""
        return read_wrapping_keys(
            split_list(self.encryption_keys), self.encryption_command, self.encryption_seconds
        )
