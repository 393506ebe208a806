"""The events of a call, briefly."""

from parley.v1.gateway_pb2 import GenerateResponse, RouteAttemptStarted, TextDelta


def attempt(number: int, route: str) -> GenerateResponse:
    return GenerateResponse(route_attempt=RouteAttemptStarted(number=number, route=route))


def delta(route_attempt: int, offset: int, text: str) -> GenerateResponse:
    return GenerateResponse(delta=TextDelta(route_attempt=route_attempt, offset=offset, text=text))
