"""What tests do with a call that fails."""

from collections.abc import Awaitable

import grpc
import pytest

from parley.runtime.errors import ParleyError, from_rpc_error

__all__ = ["catch_error"]


async def catch_error(call: Awaitable[object]) -> ParleyError:
    """Make a call that must fail, and return its error."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value)
