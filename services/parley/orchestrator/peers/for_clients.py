"""Calls of other services for a client of the orchestrator: their own errors reach it, and a service that is away is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc

from parley.runtime.errors import from_rpc_error, is_transport, unavailable

SECONDS: Final = 10.0
"""How long such a call may take."""
_RETRY_SECONDS: Final = 1.0
_PASSED_ON: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Codes of errors that say something to the client too."""
_AWAY: Final = frozenset({grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNIMPLEMENTED})
"""Codes with which a service is as good as away: it is too slow, or in a rollout still of the version before."""


@contextmanager
def pass_on_errors(service: str) -> Iterator[None]:
    """Raise what a service answers, or that it is away, as ParleyError for the client."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if is_transport(error) or error.code() in _AWAY:
            message = f"the {service} service is away; try again"
            reason = f"{service.upper()}_UNAVAILABLE"
            raise unavailable(reason, message, retry_after=_RETRY_SECONDS) from error
        if error.code() in _PASSED_ON:
            raise from_rpc_error(error) from error
        raise
