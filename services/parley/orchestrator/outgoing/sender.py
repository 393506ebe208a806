"""The guarded sender: makes one request to an address of others, and returns as much of the answer as it was asked for."""

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from parley.orchestrator.outgoing.answers import Answer, SendError
from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.resolving import Resolve, resolve_host
from parley.orchestrator.outgoing.web_address import AddressError, OutOfReachError, parse_address

_CHUNK_BYTES: Final = 64 * 1024
_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": "parley"}


class GuardedSender(Struct, frozen=True):
    """Makes requests.

    Each goes through the guard. A redirect is an answer like any other.

    Attributes:
        reach: What may be reached.
        seconds: How long a request may take, from the search for its host's addresses to the end of the answer.
        max_bytes: How much of an answer is read.
        resolve: What finds the addresses of a host.
    """

    reach: Reach
    seconds: float = 15.0
    max_bytes: int = 64 * 1024
    resolve: Resolve = resolve_host

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a body, and return the answer. Raises SendError if there is none."""
        return await self._send("POST", url, headers, body)

    async def get(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Ask for what is at a URL, and return the answer. Raises SendError if there is none."""
        return await self._send("GET", url, headers, None)

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        import aiohttp  # late, as the guard: most commands send nothing

        from parley.orchestrator.outgoing.guard import describe_failure

        try:
            async with asyncio.timeout(self.seconds):
                return await self._request(method, url, {**_HEADERS, **headers}, body)
        except AddressError as error:
            is_out_of_reach = isinstance(error, OutOfReachError)
            raise SendError(str(error), may_have_arrived=False, is_out_of_reach=is_out_of_reach) from None
        except TimeoutError:
            message = f"it did not answer within {self.seconds:g} s"
            raise SendError(message, may_have_arrived=True, is_timeout=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            message = f"it could not be reached: {describe_failure(error)}"
            # Not `from error`: its message may hold the address.
            raise SendError(message, may_have_arrived=not _is_unsent(error)) from None

    async def _request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        from parley.orchestrator.outgoing.guard import Guard

        guard, address = Guard(self.reach, self.resolve), parse_address(url)
        async with guard.request(method, address, headers=headers, body=body, seconds=self.seconds) as found:
            read = bytearray()
            async for chunk in found.content.iter_chunked(_CHUNK_BYTES):
                read += chunk
                if len(read) >= self.max_bytes:
                    break
            headers = {name.lower(): value for name, value in found.headers.items()}
            return Answer(found.status, headers, bytes(read[: self.max_bytes]))


def _is_unsent(error: Exception) -> bool:
    """Return whether a request failed before any of it was sent."""
    import aiohttp

    return isinstance(error, (aiohttp.ClientConnectorError, aiohttp.InvalidURL, ValueError))
