"""The client of the ratings."""

from collections.abc import AsyncGenerator
from typing import Final

import grpc

from parley.client.connection import Connection
from parley.v1 import ratings_pb2, ratings_pb2_grpc

__all__ = ["RatingsClient"]

_PAGE: Final = 200


class RatingsClient(Connection):
    """Ratings of one tenant's agents; use it as `async with`. Failures are ParleyError."""

    def _create_stub(self, connected: grpc.aio.Channel) -> None:
        self._stub = ratings_pb2_grpc.RatingsServiceStub(connected)

    async def list(
        self, domain: str = "", *, page_size: int = _PAGE
    ) -> AsyncGenerator[ratings_pb2.Rating, None]:
        """Yield ratings in a domain, or overall, best first, page by page as they are asked for."""
        token = ""
        while True:
            request = ratings_pb2.ListRatingsRequest(domain=domain, page_size=page_size, page_token=token)
            page = await self._call(self._stub.ListRatings, request)
            for rating in page.ratings:
                yield rating
            token = page.next_page_token
            if not token:
                return
