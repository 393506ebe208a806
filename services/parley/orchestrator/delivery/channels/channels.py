"""The channels that the operator allows."""

from parley.orchestrator.delivery.channels.stdout import StdoutChannel
from parley.orchestrator.delivery.message import Channel, DeliveryError, Receiver
from parley.v1.hook_pb2 import HookTarget


class Channels:
    """Creates channels to receivers."""

    def check(self, target: HookTarget) -> tuple[tuple[str, str], ...]:
        """Return what is wrong with a target: the path of a field below it, and why; empty if nothing is."""
        if target.WhichOneof("target") == "stdout":
            return ()
        return (("", "must be stdout: this server has no other channel"),)

    def create(self, receiver: Receiver) -> Channel:
        """Return the channel to a receiver. Raise DeliveryError if its target is not allowed."""
        if self.check(receiver.hook.target):
            raise DeliveryError("this server has no channel for its target", permanent=True)
        return StdoutChannel()
