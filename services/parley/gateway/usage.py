"""What calls use: requests, tokens, money, and time in queues."""

from typing import Protocol

from msgspec import Struct, field

from parley.v1 import agent_pb2


class RouteUsage(Struct):
    """What a call has used at one route so far, failed and abandoned requests included."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.input_tokens + self.output_tokens

    def since(self, before: "RouteUsage") -> "RouteUsage":
        """Return what was used after `before`."""
        return RouteUsage(
            self.requests - before.requests,
            self.input_tokens - before.input_tokens,
            self.output_tokens - before.output_tokens,
        )


class PricedRoute(Protocol):
    """A route that knows what its tokens cost."""

    @property
    def name(self) -> str:
        """The route's name."""
        ...

    def cost_micros(self, used: RouteUsage) -> int | None:
        """Return what this cost, in millionths of a US dollar; None if a price is unknown."""
        ...


class UsageMeter(Struct):
    """What a call has used so far, route by route, and how long it waited in queues.

    `earlier` is what an earlier run used whose answer is gone, and which nobody has counted.
    """

    by_route: dict[str, tuple[PricedRoute, RouteUsage]] = field(default_factory=dict)
    queued_seconds: float = 0.0
    reasks: int = 0
    earlier: agent_pb2.Usage | None = None

    def of(self, route: PricedRoute) -> RouteUsage:
        """Return the account of one route."""
        return self.by_route.setdefault(route.name, (route, RouteUsage()))[1]

    def usage(self) -> agent_pb2.Usage:
        """Return the sum over all routes, without a cost if the price of one is unknown."""
        requests = read = written = 0
        costs: int | None = 0
        for route, used in self.by_route.values():
            requests += used.requests
            read += used.input_tokens
            written += used.output_tokens
            cost = route.cost_micros(used)
            costs = None if costs is None or cost is None else costs + cost
        if self.earlier is not None:
            requests += self.earlier.requests
            read += self.earlier.input_tokens
            written += self.earlier.output_tokens
            cost = self.earlier.cost_micros if self.earlier.HasField("cost_micros") else None
            costs = None if costs is None or cost is None else costs + cost
        return agent_pb2.Usage(requests=requests, input_tokens=read, output_tokens=written, cost_micros=costs)
