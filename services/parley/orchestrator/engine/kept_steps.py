"""The steps of rounds that are over and need not be run again, as the log has them."""

from msgspec import Struct

from parley.orchestrator.engine.running_code import name_running_code
from parley.orchestrator.engine.step_runner import may_be_retried
from parley.orchestrator.log.replay import RecordedState
from parley.v1.debate_pb2 import Reply
from parley.v1.event_pb2 import StepFailed


class KeptSteps(Struct, frozen=True):
    """What a debate's log has of its steps."""

    recorded: RecordedState

    def has_round(self, number: int) -> bool:
        """Return whether a round is over, and only the code that runs here has run the debate: it would ask the same again."""
        is_over = f"round/{number}/finished" in self.recorded.notes
        return is_over and self.recorded.codes == {name_running_code()}

    def find_reply(self, key: str) -> Reply | StepFailed:
        """Return an agent's recorded reply, or its failure. Use it for a step of a round that is kept.

        Raises:
            LookupError: there is none, or the step is to be asked again.
        """
        number, outcome = self.recorded.outcomes[key]
        if key in self.recorded.retried or may_be_retried(number, outcome):
            raise LookupError(key)
        return outcome if isinstance(outcome, StepFailed) else outcome.reply
