"""Requests by the client's connections are those that the client itself would send, and its errors are those that it would raise."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from parley.gateway.wire.client_requests import ClientRequests
from parley.gateway.wire.openai_parts import APIConnectionError, APIStatusError, AsyncOpenAI, Omit

BASE = "http://models.example/v1"
_DEFAULT_HEADERS: dict[str, Any] = {
    "X-Own": "own",
    "OpenAI-Organization": Omit(),
    "OpenAI-Project": Omit(),
}


class Endpoint:
    """Keeps what it is asked, and gives one answer."""

    def __init__(self, answer: httpx2.Response | Exception) -> None:
        self.asked: list[httpx2.Request] = []
        self._answer = answer
        self.connections = httpx2.AsyncClient(transport=httpx2.MockTransport(self._handle))
        self.client = AsyncOpenAI(
            api_key="sk-secret",
            base_url=BASE,
            default_headers=_DEFAULT_HEADERS,
            max_retries=0,
            http_client=self.connections,
        )

    def requests(self, headers: Mapping[str, Any]) -> ClientRequests:
        return ClientRequests(self.client, self.connections, headers, connect_seconds=3)

    def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def sent(request: httpx2.Request) -> dict[str, str]:
    """Its headers without what the client says of its own tries and library."""
    return {
        name: value
        for name, value in request.headers.items()
        if name not in {"x-stainless-async", "x-stainless-retry-count", "x-stainless-os", "x-stainless-arch"}
    }


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": Omit()}, {"authorization": Omit(), "api-key": "sk-secret"}]
)
async def test_a_request_goes_where_the_client_would_send_it_with_its_headers(
    headers: dict[str, Any],
) -> None:
    endpoint = Endpoint(httpx2.Response(200, json={}))
    await endpoint.client.post(
        "/chat/completions", cast_to=object, content=b"{}", options={"headers": headers, "timeout": None}
    )
    requests = endpoint.requests(headers)
    for _ in range(2):
        await requests.send("POST", "/chat/completions", b"{}")
    clients, *ours = endpoint.asked
    for each in ours:
        assert (each.method, each.url, each.content) == (clients.method, clients.url, clients.content)
        assert sent(each) == sent(clients)
        assert each.extensions["timeout"] == {"connect": 3, "read": None, "pool": None}


async def test_headers_are_taken_from_the_client_once_and_those_of_a_request_stay_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint = Endpoint(httpx2.Response(200, json={}))
    read: list[str] = []
    property_of = AsyncOpenAI.default_headers.fget  # type: ignore[attr-defined]

    def count(client: AsyncOpenAI) -> Any:
        read.append("")
        return property_of(client)

    monkeypatch.setattr(AsyncOpenAI, "default_headers", property(count))
    requests = endpoint.requests({})
    for own in ({"X-One": "1"}, {}):
        await requests.send("POST", "/responses", b"{}", own)
    assert len(read) == 1
    assert ["x-one" in each.headers for each in endpoint.asked] == [True, False]


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(404, json={"error": {"message": "no such model", "code": "model_not_found", "param": "model"}}),
        httpx2.Response(429, json={"detail": "slow down"}, headers={"retry-after": "3"}),
        httpx2.Response(502, text="<html>a proxy</html>"),
        httpx2.Response(307, headers={"location": "http://elsewhere.example"}),
        httpx2.Response(500, content=b""),
    ],
    ids=lambda answer: str(answer.status_code),
)  # fmt: skip
async def test_an_error_says_what_the_clients_own_says(answer: httpx2.Response) -> None:
    endpoint = Endpoint(answer)
    errors = []
    with pytest.raises(APIStatusError) as raised:
        await endpoint.client.post(
            "/responses", cast_to=object, content=b"{}", options={"follow_redirects": False}
        )
    errors.append(raised.value)
    with pytest.raises(APIStatusError) as raised:
        await endpoint.requests({}).send("POST", "/responses", b"{}")
    errors.append(raised.value)
    clients, ours = ((each.status_code, each.body, each.code, each.param) for each in errors)
    assert ours == clients
    assert errors[1].response.headers == errors[0].response.headers
    assert errors[1].response.is_closed


async def test_a_broken_way_is_the_clients_error_with_its_cause() -> None:
    broken = httpx2.ConnectError("refused")
    with pytest.raises(APIConnectionError) as raised:
        await Endpoint(broken).requests({}).send("GET", "/models")
    assert raised.value.__cause__ is broken
