"""A debate's events as Server-Sent Events: followed, continued and ended, as `EventSource` does it."""

import json
from typing import Any

from tests.integration.edge.conftest import Edge
from tests.support.scripted_gateway import ScriptedGateway


def parse(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return id, kind and data of each event of a stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


async def follow(
    edge: Edge, debate: str, query: str = "", **headers: str
) -> tuple[int, list[tuple[str, str, dict[str, Any]]]]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{edge.url}/v1/debates/{debate}/events{query}"
    async with edge.session.get(url, headers=given) as answer:
        text = await answer.text()
        return answer.status, parse(text) if answer.status == 200 else [("", "", json.loads(text or "{}"))]


async def test_a_debate_is_followed_from_the_first_event_to_the_last(edge: Edge) -> None:
    debate = await edge.create()
    status, events = await follow(edge, debate)
    found = await edge.orchestrator.get(debate)
    assert status == 200
    assert [each[0] for each in events[:-1]] == [str(n) for n in range(1, found.last_sequence + 1)]
    assert {each[1] for each in events[:-1]} == {"event"}
    assert "debateCreated" in events[0][2]
    assert events[-1] == ("", "end", {})


async def test_a_client_that_comes_back_gets_what_it_has_not_seen_and_at_the_end_is_told_not_to_come_again(
    edge: Edge,
) -> None:
    debate = await edge.run_debate()
    _, events = await follow(edge, debate, Last_Event_ID="5")
    assert events[0][0] == "6"
    assert await follow(edge, debate, "?after=5") == (200, events)
    last = next(each[0] for each in reversed(events) if each[0])
    assert (await follow(edge, debate, Last_Event_ID=last))[0] == 204


async def test_text_flows_as_deltas_if_it_is_asked_for(edge: Edge, gateway: ScriptedGateway) -> None:
    hold = gateway.hold("round/1/propose/*")
    debate = await edge.create()
    url = f"{edge.url}/v1/debates/{debate}/events?deltas=1"
    async with edge.session.get(url) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        hold.release()
        kinds = {each[1] for each in parse(await answer.text())}
    assert kinds >= {"event", "end"}


async def test_what_cannot_be_followed_has_a_status_and_a_reason(edge: Edge) -> None:
    status, [(_, _, told)] = await follow(edge, "deb-20260101-000000-aaaaaaaa")
    assert (status, told["reason"]) == (404, "DEBATE_NOT_FOUND")
    status, [(_, _, told)] = await follow(edge, "deb-20260101-000000-aaaaaaaa", Last_Event_ID="-1")
    assert (status, told["code"]) == (400, "invalid_argument")


async def test_a_debate_without_news_answers_before_there_is_any(
    edge: Edge, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    debate = await edge.create()
    url = f"{edge.url}/v1/debates/{debate}/events"
    async with edge.session.get(
        f"{url}?after={(await edge.orchestrator.get(debate)).last_sequence}"
    ) as answer:
        assert answer.status == 200
        hold.release()
        assert parse(await answer.text())[-1][1] == "end"
    async with edge.session.get(f"{url}?after=100000") as answer:
        assert (answer.status, (await answer.json())["code"]) == (400, "out_of_range")
