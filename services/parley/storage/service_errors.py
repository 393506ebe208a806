"""Conversion of a store's errors into a service's errors."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from parley.runtime.errors import ParleyError, failed_precondition, unavailable
from parley.storage.ports import KeyMissingError, StorageError, StoreDamagedError


@contextmanager
def map_store_errors(store: str = "the store") -> Iterator[None]:
    """Raise errors of a store as errors of the service. `store` names the store in the message.

    Raise DATA_LOSS (`STORE_DAMAGED`) if the store is damaged, FAILED_PRECONDITION (`ENCRYPTION_KEY_MISSING`) if data is encrypted under
    a key that is not set, else UNAVAILABLE (`STORE_UNAVAILABLE`).
    """
    try:
        yield
    except StoreDamagedError as error:
        raise ParleyError(grpc.StatusCode.DATA_LOSS, "STORE_DAMAGED", str(error)) from error
    except KeyMissingError as error:
        raise failed_precondition("ENCRYPTION_KEY_MISSING", str(error)) from error
    except StorageError as error:
        raise unavailable("STORE_UNAVAILABLE", f"{store} failed: {error}", retry_after=1.0) from error
