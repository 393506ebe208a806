"""The name of a call."""

import json
from dataclasses import dataclass

__all__ = ["CallKey"]


@dataclass(frozen=True, slots=True)
class CallKey:
    """The name of a call that is the same wherever it is asked from."""

    tenant: str
    debate_id: str
    step: str
    step_attempt: int

    def text(self) -> str:
        """Return the name as a document's key."""
        return json.dumps([self.tenant, self.debate_id, self.step, self.step_attempt])
