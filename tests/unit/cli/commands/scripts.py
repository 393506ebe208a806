"""What scripted debates go through, and what comes of it."""

from parley.v1.event_pb2 import PhaseFinished, PhaseStarted, RoundStarted
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate

OTHER_ID = "deb-20260102-030405-zzzzzzzz"
ROLES = "known roles: architect, data-modeling, generalist, performance, security, simplicity, testing"
ANSWER = "Use a monolith.\n\nConfidence: 72 of 100\n"


def write_saved_line(server: str) -> str:
    """The line that names a debate that was held at a server."""
    return f"Saved debate {DEBATE_ID}; parley show {DEBATE_ID} --server {server}"


def run_one_round(debate: ScriptedDebate) -> None:
    debate.add(RoundStarted(number=1, total=1))
    debate.add(PhaseStarted(activity="proposal", round=1, expected=1))
    debate.step("ada", "proposal", "\nUse one.\nBecause.")
    debate.add(PhaseFinished(activity="proposal", round=1))
    debate.conclude()
