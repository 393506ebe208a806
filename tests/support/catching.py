"""What tests do with a call that fails, and with a request that is bad."""

from collections.abc import Awaitable, Sequence

import grpc
import pytest

from parley.runtime.errors import FieldViolation, ParleyError, from_rpc_error
from parley.runtime.validation import Violations


async def catch_error(call: Awaitable[object]) -> ParleyError:
    """Make a call that must fail, and return its error."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value)


def list_violations(violations: Violations) -> Sequence[FieldViolation]:
    """Return the bad fields for which a request would be refused."""
    try:
        violations.refuse()
    except ParleyError as error:
        return error.violations
    return ()
