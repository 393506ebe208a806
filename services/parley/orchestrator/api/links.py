"""The RPCs about one-time links: protobuf in and out."""

from typing import Final

import grpc

from parley.orchestrator.api.interventions import intervention_event
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.delivery.tenant_hooks import TenantHooks
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.links.checkpoint import OpenCheckpoint, find_open_checkpoint, intervention_of
from parley.orchestrator.links.tokens import LinkTokens, hash_token, link_subject
from parley.orchestrator.links.uses import LinkUses
from parley.orchestrator.model.short_text import to_beginning
from parley.orchestrator.model.times import time_of
from parley.runtime.errors import FieldViolation, ParleyError, failed_precondition, invalid_argument
from parley.runtime.identity.identity import current_tenant
from parley.storage.ports import Log
from parley.v1 import link_pb2, orchestrator_pb2, orchestrator_pb2_grpc

_MAX_QUESTION: Final = 1000
_MAX_ASKED: Final = 10_000


class LinkServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for one-time links. `links` is None if the operator allows none."""

    __slots__ = ()

    links: LinkTokens | None
    link_uses: LinkUses
    hooks: TenantHooks
    intake: Intake
    log: Log

    async def GetLink(  # noqa: N802
        self, request: link_pb2.GetLinkRequest, _context: object
    ) -> link_pb2.GetLinkResponse:
        """Return what a link is for."""
        claims = self._read(request.token)
        found = await self._check_open(request.token, claims)
        return link_pb2.GetLinkResponse(
            action=claims.action,
            debate_id=claims.debate_id,
            question=to_beginning(found.question, _MAX_QUESTION),
            asked=to_beginning(found.asked, _MAX_ASKED),
            expire_time=claims.expire_time,
        )

    async def UseLink(  # noqa: N802
        self, request: link_pb2.UseLinkRequest, _context: object
    ) -> link_pb2.UseLinkResponse:
        """Do what a link is for."""
        claims = self._read(request.token)
        await self._check_open(request.token, claims)
        asked = orchestrator_pb2.InterveneRequest(
            request_id=f"link-{hash_token(request.token)}",
            debate_id=claims.debate_id,
            intervention=intervention_of(claims),
        )
        intervened = intervention_event(asked, link_subject(claims))
        with map_store_errors():
            # Two calls at the same time do one thing, since their request id is the same; one of them is told so.
            sequence = await self.intake.intervene(claims.tenant, claims.debate_id, intervened)
            now = self.intake.clock.now()
            if not await self.link_uses.add(request.token, time_of(claims.expire_time), now):
                raise _used_error()
        return link_pb2.UseLinkResponse(action=claims.action, debate_id=claims.debate_id, sequence=sequence)

    def _read(self, token: str) -> link_pb2.LinkClaims:
        """Return what a link of the caller's tenant is for. Raise ParleyError."""
        if not token:
            raise invalid_argument(
                [FieldViolation("token", "is empty, must be the last part of a link's URL")]
            )
        claims = self.links.read(token) if self.links is not None else None
        if claims is None or claims.tenant != current_tenant():
            raise _unknown_error()
        if time_of(claims.expire_time) <= self.intake.clock.now():
            raise failed_precondition("LINK_EXPIRED", "this link has expired")
        return claims

    async def _check_open(self, token: str, claims: link_pb2.LinkClaims) -> OpenCheckpoint:
        with map_store_errors():
            if await self.link_uses.has(token):
                raise _used_error()
            if not await self.hooks.store.has(claims.tenant, claims.hook_id):
                raise _unknown_error()  # whoever deletes a hook takes back what it gave
            found = await find_open_checkpoint(self.log, claims)
        if found is None:
            message = "the debate does not wait for this answer any more"
            raise failed_precondition("CHECKPOINT_CLOSED", message)
        return found


def _unknown_error() -> ParleyError:
    return ParleyError(grpc.StatusCode.NOT_FOUND, "LINK_NOT_FOUND", "there is no such link here")


def _used_error() -> ParleyError:
    return failed_precondition("LINK_USED", "this link was used already; it works once")
