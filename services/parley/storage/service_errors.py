"""Conversion of a store's errors into a service's errors."""

import grpc

from parley.runtime.errors import ParleyError, unavailable
from parley.storage.ports import StorageError, StoreDamagedError


def to_service_error(error: StorageError, store: str = "the store") -> ParleyError:
    """Return DATA_LOSS (`STORE_DAMAGED`) if the store is damaged, else UNAVAILABLE (`STORE_UNAVAILABLE`).

    `store` names the store in the message.
    """
    if isinstance(error, StoreDamagedError):
        return ParleyError(grpc.StatusCode.DATA_LOSS, "STORE_DAMAGED", str(error))
    return unavailable("STORE_UNAVAILABLE", f"{store} failed: {error}", retry_after=1.0)
