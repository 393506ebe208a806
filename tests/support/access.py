"""Callers of every kind: keys, and what services sign."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor

import parley.v1
from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.runtime.identity.identity import Role
from parley.runtime.identity.service_tokens import ServiceSigner
from parley.runtime.labels import label_scope
from parley.storage.ports import Documents
from parley.v1 import (
    convergence_pb2,
    gateway_pb2,
    memory_pb2,
    orchestrator_pb2,
    ratings_pb2,
)

SECRET = "0123456789abcdef0123456789abcdef"
Headers = Sequence[tuple[str, str]]

_FILES = (orchestrator_pb2, gateway_pb2, convergence_pb2, ratings_pb2, memory_pb2)


def methods() -> list[MethodDescriptor]:
    """Every RPC of every service of the contract."""
    named = {f"{each.__name__.rpartition('.')[2]}" for each in _FILES}
    assert named == _with_services(), "a service of the contract is not in the matrix"
    services = [service for file in _FILES for service in file.DESCRIPTOR.services_by_name.values()]
    return [method for service in services for method in service.methods]


def _with_services() -> set[str]:
    from importlib import import_module
    from pkgutil import iter_modules

    names = [each.name for each in iter_modules(parley.v1.__path__) if each.name.endswith("_pb2")]
    return {name for name in names if import_module(f"parley.v1.{name}").DESCRIPTOR.services_by_name}


async def key_for(documents: Documents, tenant: str, roles: Iterable[Role]) -> Headers:
    """Make a key; return what its holder sends."""
    await documents.prepare(KEYS)
    _, text = await KeyStore(documents).add(tenant, "test", frozenset(roles), datetime.now(UTC))
    return (("authorization", f"Bearer {text}"),)


def service_headers(tenant: str, secret: str = SECRET) -> Headers:
    """What the orchestrator sends to another service on behalf of a tenant."""
    with label_scope(tenant=tenant):
        return ServiceSigner("orchestrator", lambda: (secret.encode(),)).headers()


async def stub_call(
    channel: grpc.aio.Channel, method: MethodDescriptor, headers: Headers, request: Any = None
) -> Any:
    """Call an RPC by its descriptor; return its answer, or the first one of a stream, None where there is none."""
    call = _open_call(channel, method, headers, request)
    if not method.server_streaming:
        return await call
    async for answer in call:
        call.cancel()
        return answer
    return None


async def stub_answers(
    channel: grpc.aio.Channel, method: MethodDescriptor, headers: Headers, request: Any
) -> list[Any]:
    """Call an RPC by its descriptor; return all that it answers, up to the end of a stream."""
    call = _open_call(channel, method, headers, request)
    return [each async for each in call] if method.server_streaming else [await call]


def _open_call(channel: grpc.aio.Channel, method: MethodDescriptor, headers: Headers, request: Any) -> Any:
    path = f"/{method.containing_service.full_name}/{method.name}"
    codec = {
        "request_serializer": lambda message: message.SerializeToString(),
        "response_deserializer": message_factory.GetMessageClass(method.output_type).FromString,
    }
    asked = request if request is not None else message_factory.GetMessageClass(method.input_type)()
    # Without a request of its own a stream is empty: whoever writes to one that was refused meanwhile gets INTERNAL from grpc.aio.
    given: Any = iter([asked] if request is not None else []) if method.client_streaming else asked
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    return getattr(channel, kind)(path, **codec)(given, metadata=tuple(headers), timeout=20)
