"""Removes the old parts of audit logs, once an hour."""

from datetime import datetime, timedelta
from typing import Final

from parley.orchestrator.audit.parts import AuditLogs, LogHead
from parley.orchestrator.log.events import CorruptEventError
from parley.runtime.clock import Clock
from parley.runtime.clock_watch import ClockWatch
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError, StoreUnavailableError

_CHECK_SECONDS: Final = 3600.0

_logger = get_logger(__name__)


async def remove_old_parts(logs: AuditLogs, clock: Clock, days: float) -> None:
    """Remove what is older than so many days, until cancelled; 0: nothing."""
    watch = ClockWatch(clock)
    while days:
        if not watch.is_steady():
            await clock.sleep(_CHECK_SECONDS)
            continue
        now = clock.now()
        before = now - timedelta(days=days)
        try:
            async for head in logs.list_heads():
                await _remove_before(logs, head, before, now)
        except StorageError as error:
            _logger.warning(
                "store unavailable; old entries of audit logs are removed later", error=str(error)
            )
        except Exception:
            # What cannot be read must not end the orchestrator.
            _logger.exception("old entries of audit logs could not be removed; trying again later")
        await clock.sleep(_CHECK_SECONDS)


async def _remove_before(logs: AuditLogs, head: LogHead, before: datetime, now: datetime) -> None:
    """Remove the old parts of one log. One that fails keeps them, and keeps nobody else's, unless the store is away."""
    try:
        await logs.remove_before(head, before, now)
    except StoreUnavailableError:
        raise
    except (CorruptEventError, StorageError) as error:
        _logger.error("an audit log keeps its old entries", tenant=head.tenant, error=str(error))  # noqa: TRY400 - the message is enough
