"""Services made on the spot from async functions; requests and answers are bytes."""

import inspect
from typing import Any

import grpc

from parley.runtime.server import Service


def unary(handler: Any) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.unary_unary_rpc_method_handler(handler)


def stream(handler: Any) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.unary_stream_rpc_method_handler(handler)


def client_stream(handler: Any) -> "grpc.RpcMethodHandler[bytes, bytes]":
    return grpc.stream_unary_rpc_method_handler(handler)


def make_service(name: str = "test.v1.TestService", **methods: Any) -> Service:
    """A service with these methods; a bare coroutine function is a unary one, an async generator a stream."""
    handlers = {
        key: handler
        if isinstance(handler, grpc.RpcMethodHandler)
        else (stream if inspect.isasyncgenfunction(handler) else unary)(handler)
        for key, handler in methods.items()
    }

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))

    return Service(name, register)


def method(channel: grpc.aio.Channel, name: str, service: str = "test.v1.TestService") -> Any:
    """A unary method of a test service, to be called with bytes."""
    return channel.unary_unary(f"/{service}/{name}")


def stream_method(channel: grpc.aio.Channel, name: str, service: str = "test.v1.TestService") -> Any:
    """A method of a test service that answers with a stream, to be called with bytes."""
    return channel.unary_stream(f"/{service}/{name}")


def collect_method(channel: grpc.aio.Channel, name: str, service: str = "test.v1.TestService") -> Any:
    """A method of a test service that takes a stream, to be called with an iterator of bytes."""
    return channel.stream_unary(f"/{service}/{name}")
