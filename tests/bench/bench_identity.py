"""What it costs to know who calls: CPU of server and client a unary call, beside one where nobody is asked."""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import grpc

from parley.orchestrator.keys.authenticator import ApiKeyAuthenticator
from parley.orchestrator.keys.store import KeyStore
from parley.orchestrator.keys.uses import KeyUses
from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.clock import SystemClock
from parley.runtime.identity.guard import AUTHORIZATION, OPEN, SERVICE_TOKEN, Credentials, Guard, bearer_token
from parley.runtime.identity.json_web_tokens import JsonWebTokens, TokenRules
from parley.runtime.identity.service_tokens import ServiceTokens
from parley.runtime.identity.signing_keys import SigningKeys, key_fetcher
from parley.runtime.server import ServerSettings, start_server
from parley.runtime.tls import ClientTls, ServerTls
from parley.storage.opening import open_store
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from tests.bench.figures import aim, main, show_middle, table
from tests.integration.runtime.wire import make_service, method
from tests.support.access import SECRET, Headers, key_for, service_headers
from tests.support.certificates import Authority
from tests.support.token_issuer import AUDIENCE, TokenIssuer

_SERVICE = "parley.v1.OrchestratorService"
_AT_MOST = 0.3
"""Milliseconds of CPU that authentication may add to a call."""


@dataclass
class _Way:
    """One way in, and what calls by it took."""

    name: str
    call: Any
    headers: Sequence[Headers]
    guard: Guard
    is_aim: bool = True
    forget: Callable[[], object] = tuple
    taken: list[float] = field(default_factory=list)
    admitted: list[float] = field(default_factory=list)

    async def measure(self, calls: int) -> None:
        self.forget()
        began = time.process_time()
        for number in range(calls):
            await self.call(b"", metadata=self.headers[number % len(self.headers)])
        self.taken.append((time.process_time() - began) * 1000 / calls)
        shown = [_make_credentials(self.headers[number % len(self.headers)]) for number in range(calls)]
        self.forget()
        began = time.process_time()
        for each in shown:
            await self.guard.admit(f"{_SERVICE}/GetDebate", each)
        self.admitted.append((time.process_time() - began) * 1000 / calls)


def _make_credentials(headers: Headers) -> Credentials:
    given = dict(headers)
    return Credentials(bearer_token(given.get(AUTHORIZATION, "")), given.get(SERVICE_TOKEN, ""), "", dict)


async def run(quick: bool) -> None:
    """Interleave rounds of calls by each way, and tell what each adds to the calls of nobody in particular."""
    rounds, calls = (3, 300) if quick else (9, 1000)
    async with AsyncExitStack() as stack:
        ways = await _ways(stack, Path(stack.enter_context(TemporaryDirectory())), calls)
        for way in ways:
            await way.measure(50)
            way.taken.clear()
            way.admitted.clear()
        for _ in range(rounds):
            for way in ways:
                await way.measure(calls)
    table(
        ["who calls shows", "ms CPU a call", "of these to let it in", "aim"],
        [
            [
                each.name,
                show_middle(each.taken),
                show_middle(each.admitted, 4),
                aim(median(each.admitted), _AT_MOST) if each.is_aim else "-",
            ]
            for each in ways
        ],
    )


async def _ways(stack: AsyncExitStack, folder: Path, calls: int) -> list[_Way]:
    issuer = await stack.enter_async_context(TokenIssuer())
    store = await stack.enter_async_context(open_store(f"sqlite:///{folder}", "keys"))
    key = await key_for(store.documents, "acme", {ACCESS_ROLE_READ})
    rules = TokenRules(issuer.url, AUDIENCE, ("RS256", "ES256"))
    clock, keys = SystemClock(), KeyStore(store.documents)
    tokens = JsonWebTokens(rules, SigningKeys(key_fetcher(issuer.url, None), clock))
    guard = Guard(
        ServiceTokens(lambda: (SECRET.encode(),)),
        ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)),
        tokens,
    )
    authority = Authority(folder)
    tls = ServerTls(*authority.sign("server"))
    opened = await _serve(stack, ServerSettings(guard=OPEN))
    closed = await _serve(stack, ServerSettings(guard=guard))
    private = await _serve(stack, ServerSettings(guard=guard, tls=tls), ClientTls(authority.file))
    new = [_bearer(issuer.sign(sub=f"ann{number}", lasts=3600)) for number in range(calls)]
    return [
        _Way("nothing, and is not asked", opened, [()], OPEN, is_aim=False),
        _Way("an API key", closed, [key], guard),
        _Way("a JWT that is known", closed, [_bearer(issuer.sign(lasts=3600))], guard),
        _Way(
            "a JWT seen for the first time",
            closed,
            new,
            guard,
            is_aim=False,
            forget=tokens._cache._values.clear,
        ),
        _Way("a service's token", closed, [service_headers("acme")], guard),
        _Way("an API key, over TLS", private, [key], guard),
    ]


def _bearer(token: str) -> Headers:
    return (("authorization", f"Bearer {token}"),)


async def _serve(stack: AsyncExitStack, settings: ServerSettings, tls: ClientTls | None = None) -> Any:
    async def get_debate(request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return request

    running = await stack.enter_async_context(
        start_server([make_service(_SERVICE, GetDebate=get_debate)], settings)
    )
    connected = await stack.enter_async_context(channel(running.address, ChannelSettings(tls=tls)))
    return method(connected, "GetDebate", _SERVICE)


if __name__ == "__main__":
    main(__doc__, run)
