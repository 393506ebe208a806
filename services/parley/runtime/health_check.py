"""Ask a server of this machine how it is, where nothing else can: `python -P -m parley.runtime.health_check 127.0.0.1:7499`.

The exit code is 0 if it serves, else 1. Kubernetes asks by itself; Docker needs a command, and an image has no shell.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_SECONDS: Final = 3.0
_SERVING: Final = health_pb2.HealthCheckResponse.SERVING


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask once, print the answer, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -P -m parley.runtime.health_check", description=__doc__)
    parser.add_argument("address", help="HOST:PORT of PARLEY_HEALTH_PORT, which asks for no key")
    parser.add_argument("--service", default="", help="the gRPC name of one service (default: all)")
    given = parser.parse_args(arguments)
    with grpc.insecure_channel(given.address) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(  # type: ignore[attr-defined]
                health_pb2.HealthCheckRequest(service=given.service), timeout=_SECONDS
            )
        except grpc.RpcError as error:
            sys.stdout.write(f"{error.code().name}\n")
            return 1
    sys.stdout.write(f"{health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}\n")
    return 0 if answer.status == _SERVING else 1


if __name__ == "__main__":
    sys.exit(main())
