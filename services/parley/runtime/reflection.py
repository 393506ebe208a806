"""Server reflection for clients without the contract, under both names of the protocol.

`v1` and `v1alpha` differ in nothing but their package, and the library knows the older one alone.
"""

from collections.abc import Sequence
from typing import Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection, reflection_pb2

_V1: Final = "grpc.reflection.v1"
_SERVICE: Final = f"{_V1}.ServerReflection"


def add_reflection(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Describe these services, and reflection itself."""
    _describe_v1()
    all_names = (*names, _SERVICE, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(all_names, server)
    handler = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(all_names).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    generic = grpc.method_handlers_generic_handler(_SERVICE, {"ServerReflectionInfo": handler})
    server.add_generic_rpc_handlers((generic,))


def _describe_v1() -> None:
    """Create the description of `v1` from that of `v1alpha`, once a process."""
    pool = descriptor_pool.Default()
    described = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(described)
    alpha, described.package = described.package, _V1
    described.name = f"{_V1.replace('.', '/')}/reflection.proto"
    described.ClearField("options")  # they name packages of other languages, and call it deprecated
    for message in described.message_type:
        for field in message.field:
            if field.type_name:
                field.type_name = field.type_name.replace(alpha, _V1)
    for method in described.service[0].method:
        method.input_type = method.input_type.replace(alpha, _V1)
        method.output_type = method.output_type.replace(alpha, _V1)
    pool.AddSerializedFile(described.SerializeToString())  # the same file again changes nothing
