"""Work and replies that events tell of."""

from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import StepStarted, StepSucceeded

ADA = Work(activity="proposal", doing="proposes", agent_id="ada", round=1)
BO = Work(activity="proposal", doing="proposes", agent_id="bo", round=1)


def reply(cost: int | None = 100) -> Reply:
    said = Reply(text="text", usage=Usage(input_tokens=30, output_tokens=12, cost_micros=cost, requests=1))
    said.latency.FromMilliseconds(2100)
    return said


def start_step(work: Work) -> StepStarted:
    return StepStarted(work=work)


def end_step(work: Work, said: Reply | None = None) -> StepSucceeded:
    return StepSucceeded(work=work, reply=said)
