"""Errors of services and of the configuration, translated into errors of the command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc

from parley.cli.errors import CONFIGURATION, GENERAL, INVALID_ARGUMENTS, PROVIDER_FAILED, CommandError
from parley.client import ParleyError
from parley.runtime.errors import ConfigurationError, PartFailedError

_OF_PROVIDERS: Final = frozenset(
    {"BAD_REQUEST", "CALL_TIMEOUT", "CONTEXT_OVERFLOW", "NO_ROUTE_AVAILABLE", "TRUNCATED", "UNKNOWN_ROUTE"}
)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate errors of services and of the configuration, alone or in a group, into CommandError."""
    try:
        yield
    except Exception as error:
        command_error = _translate(first_error(error))
        if command_error is None:
            raise
        raise command_error from None


def is_provider_failure(reason: str) -> bool:
    """Return whether a failure's reason means that no provider answered, or that one refused the request."""
    return reason.startswith("PROVIDER_") or reason in _OF_PROVIDERS


def first_error(error: BaseException) -> BaseException:
    """Return the error itself, or the first inside of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _translate(error: BaseException) -> CommandError | None:
    if isinstance(error, CommandError):
        return error
    if isinstance(error, ConfigurationError):
        return _configuration_error(error)
    if isinstance(error, PartFailedError):
        return CommandError(str(error), GENERAL)
    return _service_error(error) if isinstance(error, ParleyError) else None


def _configuration_error(error: ConfigurationError) -> CommandError:
    first, *more = error.problems or ("the configuration cannot be used",)
    return CommandError(first, CONFIGURATION, tuple(more))


def _service_error(error: ParleyError) -> CommandError:
    if error.code == grpc.StatusCode.INVALID_ARGUMENT:
        return CommandError(error.message, INVALID_ARGUMENTS)
    if error.code == grpc.StatusCode.UNAVAILABLE and not error.reason:
        return CommandError(f"cannot be reached: {error.message}", GENERAL)
    return CommandError(error.message, PROVIDER_FAILED if is_provider_failure(error.reason) else GENERAL)
