"""Run one debate to check that an installation works: `python -P -m parley.client.trial HOST:PORT`.

The agents use the route `echo/echo`, which needs no model and exists if the gateway runs with PARLEY_ECHO=true.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from parley.client.debates import ParleyClient
from parley.client.events import event_kind
from parley.runtime.errors import ConfigurationError, ParleyError
from parley.runtime.watching import TextPiece
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, Debate, DebateSpec, DebateStatus, Participant
from parley.v1.panel_pb2 import PanelSettings

_QUESTION: Final = "Does this installation work?"
_FAILED: Final = 1


async def run_trial(target: str, *, tenant: str, route: str, seconds: float) -> Debate:
    """Run a debate of one round over a route and return it at its end; print each event's kind.

    Raise ParleyError, and TimeoutError after so many seconds.
    """
    async with asyncio.timeout(seconds), ParleyClient(target, tenant) as parley:
        debate_id = await parley.create_debate(_build_spec(route))
        print(f"debate {debate_id}", flush=True)  # noqa: T201 (what a person reads in the pod's log)
        async for event in parley.watch(debate_id):
            if not isinstance(event, TextPiece):
                print(f"  {event.sequence:4} {event_kind(event)}", flush=True)  # noqa: T201
        return await parley.get(debate_id)


def _build_spec(route: str) -> DebateSpec:
    def participant(agent_id: str, role: str) -> Participant:
        return Participant(agent=Agent(id=agent_id, role=role, routes=[route]))

    return DebateSpec(
        question=_QUESTION,
        agents=[participant("one", "architect"), participant("two", "simplicity")],
        judge=participant("judge", "judge"),
        panel=PanelSettings(rounds=1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a debate as the arguments say, print its answer, and return 0 if it completed, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -P -m parley.client.trial", description=__doc__)
    parser.add_argument("target", help="the orchestrator, as HOST:PORT")
    parser.add_argument("--tenant", default="default", help="whose debate it is (default: %(default)s)")
    parser.add_argument("--route", default="echo/echo", help="the route that answers (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="how long it may take (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    try:
        debate = asyncio.run(
            run_trial(given.target, tenant=given.tenant, route=given.route, seconds=given.seconds)
        )
    except (ParleyError, ConfigurationError) as error:
        return _fail(f"{given.target}: {error}")
    except TimeoutError:
        return _fail(f"{given.target}: no answer within {given.seconds:g} s")
    if debate.status != DEBATE_STATUS_COMPLETED:
        return _fail(
            f"{debate.id}: ended as {DebateStatus.Name(debate.status)}: {debate.failure.message or 'no answer'}"
        )
    print(debate.answer)  # noqa: T201
    return 0


def _fail(message: str) -> int:
    print(f"trial: {message}", file=sys.stderr)  # noqa: T201
    return _FAILED


if __name__ == "__main__":
    sys.exit(main())
