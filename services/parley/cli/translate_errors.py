"""Errors of the services and of the configuration as a command's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc

from parley.cli.errors import CONFIGURATION, GENERAL, INVALID_ARGUMENTS, PROVIDER_FAILED, CommandError
from parley.client import ParleyError
from parley.runtime.errors import ConfigurationError, PartFailedError

__all__ = ["first_of", "is_provider_failure", "translated"]

_OF_PROVIDERS: Final = frozenset(
    {"BAD_REQUEST", "CALL_TIMEOUT", "CONTEXT_OVERFLOW", "NO_ROUTE_AVAILABLE", "TRUNCATED", "UNKNOWN_ROUTE"}
)


@contextmanager
def translated() -> Iterator[None]:
    """Turn what the rooms below raise, alone or in a group, into CommandError."""
    try:
        yield
    except Exception as error:
        command_error = _translated(first_of(error))
        if command_error is None:
            raise
        raise command_error from None


def is_provider_failure(reason: str) -> bool:
    """Return whether a failure's reason means that no provider answered, or that it refused what it was asked."""
    return reason.startswith("PROVIDER_") or reason in _OF_PROVIDERS


def first_of(error: BaseException) -> BaseException:
    """Return the error itself, or the first inside of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _translated(error: BaseException) -> CommandError | None:
    if isinstance(error, CommandError):
        return error
    if isinstance(error, ConfigurationError):
        return _configuration(error)
    if isinstance(error, PartFailedError):
        return CommandError(str(error), GENERAL)
    return _refusal(error) if isinstance(error, ParleyError) else None


def _configuration(error: ConfigurationError) -> CommandError:
    first, *more = error.problems or ("the configuration cannot be used",)
    return CommandError(first, CONFIGURATION, tuple(more))


def _refusal(error: ParleyError) -> CommandError:
    if error.code == grpc.StatusCode.INVALID_ARGUMENT:
        return CommandError(error.message, INVALID_ARGUMENTS)
    if error.code == grpc.StatusCode.UNAVAILABLE and not error.reason:
        return CommandError(f"cannot be reached: {error.message}", GENERAL)
    return CommandError(error.message, PROVIDER_FAILED if is_provider_failure(error.reason) else GENERAL)
