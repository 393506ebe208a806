"""Debates that rest, and what is left of them once they are deleted."""

from contextlib import suppress
from typing import Any

import grpc

from parley.orchestrator.delivery.deliveries import DeliveryStore
from parley.orchestrator.engine.debate_deleter import DebateDeleter
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.log.deletions import DeletionStore
from parley.orchestrator.log.feedback import FeedbackStore
from parley.orchestrator.log.imported_receipts import ImportedReceiptStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.model.retention import Retention
from parley.orchestrator.peers.services import Convergence, Memory, Ratings, Services
from parley.storage.opening import Store
from parley.storage.ports import StoreUnavailableError
from parley.v1 import debate_pb2
from parley.v1 import orchestrator_pb2 as pb
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Orchestrator, until
from tests.support.scripted_gateway import ScriptedGateway

WITHIN = 10.0


async def hold_to_rest(gateway: ScriptedGateway, orchestrator: Orchestrator, **spec: Any) -> str:
    """Hold a debate with an intervention and a word of feedback until it is closed."""
    hold = gateway.hold("*")
    debate = await orchestrator.create(**spec)
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="Be brief."))
    hold.release()
    await orchestrator.watch(debate)
    await orchestrator.stub.SubmitFeedback(
        pb.SubmitFeedbackRequest(request_id=f"word-{debate}", debate_id=debate, value=1), timeout=WITHIN
    )
    return debate


async def delete_debate(orchestrator: Orchestrator, debate: str, *, ratings: bool = False) -> bool:
    """Delete a debate as soon as it rests: it is closed a moment before its record says so."""
    request = pb.DeleteDebateRequest(debate_id=debate, ratings=ratings)
    answers: list[pb.DeleteDebateResponse] = []

    async def is_accepted() -> bool:
        with suppress(grpc.aio.AioRpcError):
            answers.append(await orchestrator.stub.DeleteDebate(request, timeout=WITHIN))
        return bool(answers)

    await until(is_accepted, "deleted")
    return answers[0].finished


class Failing:
    """A store's part whose nth write fails, once."""

    def __init__(self, part: Any, at: list[int], *, before: bool) -> None:
        self._part, self._at, self._before = part, at, before

    def __getattr__(self, name: str) -> Any:
        if name not in {"insert", "update", "delete"}:
            return getattr(self._part, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self._at[0] -= 1
            if self._before and self._at[0] == 0:
                raise StoreUnavailableError("away")
            done = await getattr(self._part, name)(*arguments, **named)
            if self._at[0] == 0:
                raise StoreUnavailableError("away")
            return done

        return call


def deletions(
    store: Store,
    memory: Any,
    *,
    at: int = 0,
    before: bool = False,
    clock: ManualClock | None = None,
    retention: Retention | None = None,
) -> DebateDeleter:
    count = [at]
    log: Any = Failing(store.log, count, before=before)
    documents: Any = Failing(store.documents, count, before=before)
    services = Services(Convergence(memory), Ratings(memory), Memory(memory))
    return DebateDeleter(
        log,
        DebateIndex(documents),
        Inbox(documents),
        FeedbackStore(documents),
        DeliveryStore(documents),
        ImportedReceiptStore(documents),
        DeletionStore(documents),
        services,
        clock or ManualClock(),
        retention or Retention(),
    )
