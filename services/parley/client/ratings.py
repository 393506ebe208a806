"""The client of the ratings."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

import grpc

from parley.client.debates import repeated
from parley.runtime.channel import channel
from parley.v1 import ratings_pb2, ratings_pb2_grpc

__all__ = ["RatingsClient"]

_PAGE: Final = 200


class RatingsClient:
    """Ratings of one tenant's agents; use it as `async with`. Failures are ParleyError."""

    def __init__(self, target: str, tenant: str = "default", *, patience: float = 30.0) -> None:
        """Calls `host:port`, or a gRPC target; broken connections are tried again for `patience` seconds."""
        self._target = target
        self._metadata = (("parley-tenant", tenant),)
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        self._channel = channel(self._target)
        self._stub = ratings_pb2_grpc.RatingsServiceStub(self._channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def list(self, domain: str = "", *, page_size: int = _PAGE) -> AsyncIterator[ratings_pb2.Rating]:
        """Yields ratings in a domain, or overall, best first, page by page as they are asked for."""
        token = ""
        while True:
            request = ratings_pb2.ListRatingsRequest(domain=domain, page_size=page_size, page_token=token)
            page = await repeated(self._stub.ListRatings, request, self._metadata, self._patience)
            for rating in page.ratings:
                yield rating
            token = page.next_page_token
            if not token:
                return
