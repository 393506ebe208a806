"""One POST of a delivery, and what its answer means."""

from collections.abc import Mapping

from parley.orchestrator.delivery.message import DeliveryError
from parley.orchestrator.outgoing.answers import SendError
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.runtime.clock import Clock

HOW_TO_ALLOW = "; the operator can name it in PARLEY_HOOK_HOSTS"
"""Ends the line about a host that is out of reach."""
_GONE = 410


async def post(
    sender: GuardedSender, clock: Clock, url: str, body: bytes, headers: Mapping[str, str]
) -> None:
    """Return once a receiver has taken a body. Raise DeliveryError if it did not, or may not have."""
    try:
        answer = await sender.post(url, body, headers)
    except SendError as error:
        hint = HOW_TO_ALLOW if error.is_out_of_reach else ""
        raise DeliveryError(f"{error}{hint}") from None
    if answer.is_success:
        return
    why = f"it answered {answer.describe_status()}"
    if 300 <= answer.status < 400:
        why += ", and no redirect is followed: the hook needs the address itself"
    raise DeliveryError(why, retry_after=answer.retry_after(clock.now()), permanent=answer.status == _GONE)
