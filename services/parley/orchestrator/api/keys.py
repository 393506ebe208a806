"""The RPCs about API keys: protobuf in and out."""

import re
from datetime import datetime
from operator import attrgetter
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.api.page_tokens import cut_page, place_form, place_of
from parley.orchestrator.api.requests import check_name, check_request_id
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.keys.store import ApiKey
from parley.orchestrator.keys.tenant_keys import TenantKeys
from parley.orchestrator.model.times import stored_time, time_of
from parley.runtime import audit
from parley.runtime.identity.identity import current_identity, current_tenant
from parley.runtime.identity.roles import CLIENT_ROLES
from parley.runtime.validation import Violations
from parley.v1 import key_pb2, orchestrator_pb2_grpc
from parley.v1.access_pb2 import ACCESS_ROLE_UNSPECIFIED

_MAX_BUDGET: Final = 10**15
_MAX_ROLES: Final = 8
_KEY_ID: Final = re.compile(r"[0-9a-f]{12}")
_PLACE: Final = place_form(_KEY_ID)


class KeyServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the keys of the caller's tenant."""

    __slots__ = ()

    keys: TenantKeys

    async def CreateKey(  # noqa: N802
        self, request: key_pb2.CreateKeyRequest, _context: object
    ) -> key_pb2.CreateKeyResponse:
        """Create a key."""
        _check_create_request(request, self.keys.clock.now())
        with map_store_errors():
            key, text = await self.keys.create(
                current_tenant(),
                request.request_id,
                request.name,
                frozenset(request.roles),
                creator=current_identity().subject,
                expires=time_of(request.expire_time) if request.HasField("expire_time") else None,
                budget=request.budget if _has_limit(request.budget) else None,
            )
        audit.report_act(f"key {key.id}")
        return key_pb2.CreateKeyResponse(key=_to_proto(key), text=text)

    async def ListKeys(  # noqa: N802
        self, request: key_pb2.ListKeysRequest, _context: object
    ) -> key_pb2.ListKeysResponse:
        """Return a page of keys."""
        violations = Violations()
        size = violations.page_size(request.page_size)
        after = place_of(violations, request.page_token, _PLACE)
        violations.refuse()
        with map_store_errors():
            found = await self.keys.list_page(current_tenant(), after, size + 1)
        page, token = cut_page(found, size, attrgetter("created"))
        return key_pb2.ListKeysResponse(keys=map(_to_proto, page), next_page_token=token)

    async def RevokeKey(  # noqa: N802
        self, request: key_pb2.RevokeKeyRequest, _context: object
    ) -> key_pb2.RevokeKeyResponse:
        """Revoke a key."""
        violations = Violations()
        fine = bool(_KEY_ID.fullmatch(request.key_id))
        violations.check(that=fine, field="key_id", otherwise="must be 12 hex digits")
        violations.refuse()
        with map_store_errors():
            key = await self.keys.revoke(current_tenant(), request.key_id)
        audit.report_act(f"key {key.id}")
        return key_pb2.RevokeKeyResponse(key=_to_proto(key))


def _check_create_request(request: key_pb2.CreateKeyRequest, now: datetime) -> None:
    violations = Violations()
    check_request_id(violations, request.request_id)
    check_name(violations, request.name)
    violations.check(
        that=1 <= len(request.roles) <= _MAX_ROLES,
        field="roles",
        otherwise=f"must be 1 to {_MAX_ROLES} roles",
    )
    for place, role in enumerate(request.roles[:_MAX_ROLES]):
        fine = role != ACCESS_ROLE_UNSPECIFIED and role in CLIENT_ROLES
        violations.check(that=fine, field=f"roles[{place}]", otherwise="must be READ, DEBATE, STEER or ADMIN")
    for field in ("tokens_per_day", "cost_micros_per_day"):
        violations.check(
            that=0 <= getattr(request.budget, field) <= _MAX_BUDGET,
            field=f"budget.{field}",
            otherwise=f"must be 0 to {_MAX_BUDGET:,}",
        )
    if request.HasField("expire_time"):
        violations.check(
            that=_is_after(request.expire_time, now),
            field="expire_time",
            otherwise="must be a time in the future",
        )
    violations.refuse()


def _has_limit(budget: key_pb2.KeyBudget) -> bool:
    return bool(budget.tokens_per_day or budget.cost_micros_per_day)


def _is_after(stamp: Timestamp, now: datetime) -> bool:
    try:
        return time_of(stamp) > now
    except (ValueError, OverflowError):  # before the year 1 or after 9999
        return False


def _to_proto(key: ApiKey) -> key_pb2.ApiKey:
    return key_pb2.ApiKey(
        id=key.id,
        name=key.name,
        roles=sorted(key.roles),
        create_time=stored_time(key.created.partition("/")[0]),
        revoke_time=stored_time(key.revoked),
        creator=key.creator,
        last_use_time=stored_time(key.last_used),
        expire_time=stored_time(key.expires),
        budget=key.budget,
    )
