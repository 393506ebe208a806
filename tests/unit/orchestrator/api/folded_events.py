"""Events of debates that are folded."""

from parley.v1.debate_pb2 import (
    DebateFailure,
    Outcome,
    Work,
)
from parley.v1.event_pb2 import (
    Claimed,
    Concluded,
    DebateFailed,
)

PROPOSAL = Work(activity="proposal", agent_id="ada", round=1)


CRITIQUE = Work(activity="critique", agent_id="bo", round=1, target_agent_id="ada")


FAILURE = DebateFailed(
    failure=DebateFailure(
        reason="CALL_TIMEOUT",
        message="no answer",
        agent_id="ada",
        phase="round 1 proposal",
        steps=["1/proposal/ada"],
    )
)


CLAIMED = Claimed(owner="a")


ANSWERED = Concluded(outcome=Outcome(description="This one."))


CANCELLED = Concluded()
