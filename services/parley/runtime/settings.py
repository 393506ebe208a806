"""Settings from PARLEY_… variables: frozen, read once; an error names the variable."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self

from pydantic import AliasChoices, AliasPath, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsConfigDict, SettingsError

from parley.runtime.access_settings import AccessSettings
from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import Authenticator
from parley.runtime.logs import Level
from parley.runtime.server import ServerSettings

_MASK: Final = "**********"
_MIN_MASKED: Final = 8
_PREFIX: Final = "PARLEY_"
_LIKENESS: Final = 0.85
"""From which likeness on, as difflib counts it, one name is another one misspelled. Those of two services are less alike."""
_OWN_MESSAGES: Final = frozenset({"value_error", "assertion_error"})


class ServiceSettings(AccessSettings):
    """Settings of every service; a service adds its own fields in a subclass."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    port: int = Field(default=0, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    health_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="Second port, for health checks only, in plaintext, for probes; unset: none.",
    )
    log_level: Level = Field(default="info", description="Least severe level that is logged.")
    grace_seconds: float = Field(
        default=30.0, ge=0, le=3600, description="Seconds from a stop signal until running calls are cut."
    )

    @classmethod
    def load(cls, **given: Any) -> Self:
        """Read the environment, but for the values given; raise ConfigurationError with a line for each bad variable.

        A variable of another service is passed over. One whose name is nearly a setting's is not: it would do nothing.
        """
        if misspelled := tuple(_find_misspelled(cls)):
            raise ConfigurationError(*misspelled)
        try:
            return cls(**given)
        except ValidationError as error:
            problems = (_line(cls, each) for each in error.errors(include_url=False))
            raise ConfigurationError(*problems) from None
        except SettingsError as error:
            raise ConfigurationError(_json_error(cls, error)) from None

    def server(self, *ways: Authenticator) -> ServerSettings:
        """Return the settings for `start_server()` and `serve()`; `ways` are the service's own authenticators.

        Raise ConfigurationError if a file that a setting names cannot be used.
        """
        return ServerSettings(
            host=self.host,
            port=self.port,
            grace_seconds=self.grace_seconds,
            health_port=self.health_port,
            guard=self.guard(*ways),
            tls=self.server_tls(),
        )


def _find_misspelled(settings: type[AccessSettings]) -> Iterator[str]:
    variables = (_variable(settings, name) for name in settings.model_fields)
    known = {name.removeprefix(_PREFIX) for name in variables if name.startswith(_PREFIX)}
    for variable in sorted(map(str.upper, os.environ)):
        name = variable.removeprefix(_PREFIX)
        if name in known or name == variable:
            continue
        if meant := difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS):
            yield f"{variable}: is no setting; {_PREFIX}{meant[0]} is"


def _line(settings: type[AccessSettings], problem: ErrorDetails) -> str:
    location = problem["loc"]
    if not location:
        return _message(problem)
    variable = _variable(settings, str(location[0]))
    inner = "".join(f"[{part!r}]" for part in location[1:])
    if problem["type"] == "missing":
        return f"{variable}{inner}: must be set"
    # The value itself is omitted: a URL or a token may hold a secret whatever its type is.
    return f"{variable}{inner}: {_message(problem)}"


def _message(problem: ErrorDetails) -> str:
    """Return the message, without parts of the value that a validator repeats."""
    if problem["type"] == "string_pattern_mismatch" and problem["ctx"]["pattern"].startswith("^https?://"):
        return "must begin with http:// or https:// and hold no space and no @"
    message = " ".join(problem["msg"].split()).removeprefix("Value error, ")
    given = problem["input"]
    for value in given.values() if isinstance(given, Mapping) else [given]:
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        if len(text) >= _MIN_MASKED:
            message = message.replace(text, _MASK)
        elif text and problem["type"] in _OWN_MESSAGES:  # anywhere else, a short value is a word by chance
            message = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", _MASK, message)
    return message


def _json_error(settings: type[AccessSettings], error: SettingsError) -> str:
    """Return the message for a variable of JSON that could not be parsed; pydantic-settings names only the field."""
    for name in settings.model_fields:
        if f'"{name}"' in str(error):
            return f"{_variable(settings, name)}: is not valid JSON"
    return "settings: a variable is not valid JSON"


def _variable(settings: type[AccessSettings], name: str) -> str:
    field = settings.model_fields.get(name)
    alias: Any = field.validation_alias if field is not None else name
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0]
    if isinstance(alias, AliasPath):
        alias = alias.path[0]
    if alias is not None:
        return str(alias).upper()
    return f"{settings.model_config.get('env_prefix', '')}{name}".upper()
