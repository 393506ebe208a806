"""What callers of a service are told of trouble with its store."""

import grpc

from parley.runtime.errors import ParleyError, unavailable
from parley.storage.ports import StorageError, StoreDamagedError

__all__ = ["to_service_error"]


def to_service_error(error: StorageError, store: str = "the store") -> ParleyError:
    """Return DATA_LOSS (`STORE_DAMAGED`) where the store is damaged, else UNAVAILABLE (`STORE_UNAVAILABLE`).

    `store` says whose store it is.
    """
    if isinstance(error, StoreDamagedError):
        return ParleyError(grpc.StatusCode.DATA_LOSS, "STORE_DAMAGED", str(error))
    return unavailable("STORE_UNAVAILABLE", f"{store} failed: {error}", retry_after=1.0)
