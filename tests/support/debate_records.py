"""Records of debates in the index, for tests."""

from datetime import datetime
from typing import Any

from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.model.times import time_text


def create_record(tenant: str, debate: str, accepted: datetime, status: str, **fields: Any) -> DebateRecord:
    """Return the record of a debate that was accepted at that time; `fields` are what else the record says."""
    usual: dict[str, Any] = {
        "request_id": debate,
        "request_digest": "",
        "format": "panel@1",
        "open": True,
        "owner": None,
        "epoch": 0,
        "heartbeat": 0,
        "created": f"{time_text(accepted)}/{debate}",
        "updated": time_text(accepted),
        "question": "",
        "opening": "",
    }
    return DebateRecord(tenant, debate, status=status, **(usual | fields))
