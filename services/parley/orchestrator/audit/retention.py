"""Removes the old parts of audit logs, once an hour."""

from datetime import timedelta
from typing import Final

from parley.orchestrator.audit.parts import AuditLogs
from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError

_CHECK_SECONDS: Final = 3600.0

_logger = get_logger(__name__)


async def remove_old_parts(logs: AuditLogs, clock: Clock, days: float) -> None:
    """Remove what is older than so many days, until cancelled; 0: nothing."""
    while days:
        before = clock.now() - timedelta(days=days)
        try:
            async for head in logs.list_heads():
                await logs.remove_before(head, before)
        except StorageError as error:
            _logger.warning(
                "store unavailable; old entries of audit logs are removed later", error=str(error)
            )
        except Exception:
            # One log that cannot be read must not end the orchestrator.
            _logger.exception("old entries of an audit log could not be removed; trying again later")
        await clock.sleep(_CHECK_SECONDS)
