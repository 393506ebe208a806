"""What the contract declares about its RPCs."""

from functools import cache
from typing import Any

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import MethodOptions


@cache
def method_option(method: str, option: Any) -> Any:
    """Return an option of an RPC (`parley.v1.GatewayService/Generate`), or the option's default if the contract has no such RPC."""
    try:
        options = descriptor_pool.Default().FindMethodByName(method.replace("/", ".")).GetOptions()
    except KeyError:
        options = MethodOptions()
    return options.Extensions[option]
