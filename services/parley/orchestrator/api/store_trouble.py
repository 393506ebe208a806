"""Errors of the store, as a caller gets them."""

import contextlib
from collections.abc import Iterator

from parley.orchestrator.log.events import CorruptEventError
from parley.runtime.errors import internal
from parley.storage.ports import StorageError
from parley.storage.service_errors import to_service_error


@contextlib.contextmanager
def map_store_errors() -> Iterator[None]:
    """Raise errors of the store as errors of the service."""
    try:
        yield
    except CorruptEventError as corrupt:
        raise internal(str(corrupt), reason="LOG_DAMAGED") from corrupt
    except StorageError as error:
        raise to_service_error(error) from error
