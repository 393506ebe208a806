"""Errors of the store, as a caller gets them."""

import contextlib
from collections.abc import Iterator

from parley.orchestrator.log.events import CorruptEventError
from parley.runtime.errors import internal
from parley.storage import service_errors


@contextlib.contextmanager
def map_store_errors() -> Iterator[None]:
    """Raise errors of the store, and of a log that is damaged, as errors of the service."""
    try:
        with service_errors.map_store_errors():
            yield
    except CorruptEventError as corrupt:
        raise internal(str(corrupt), reason="LOG_DAMAGED") from corrupt
