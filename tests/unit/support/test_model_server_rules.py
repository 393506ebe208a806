from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.support.model_server import (
    ErrorShape,
    Fault,
    FaultKind,
    Match,
    ModelServer,
    Rule,
    ToolCall,
    ToolCalls,
    error,
    rule_from_json,
)
from tests.unit.support.clients import ask, client_of, stream_text


class Vote(BaseModel):
    choice: str


async def test_the_first_rule_that_matches_answers(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [
        Rule(Match(path="/v1/responses"), answer="first"),
        Rule(Match(prompt="split"), answer="second"),
        Rule(Match(model="other"), answer="never"),
    ]
    assert await ask(openai_client, "responses", "split") == "first"
    assert await ask(openai_client, "chat", "split") == "second"
    assert (await ask(openai_client, "chat", "merge")).startswith("Answer ")


async def test_a_rule_lets_some_calls_pass_and_then_takes_so_many(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [Rule(answer="mine", after=1, times=2), Rule(answer="other")]
    answers = [await ask(openai_client, "chat") for _ in range(4)]
    assert answers == ["other", "mine", "mine", "other"]


async def test_rules_can_go_by_call_occurrence_and_header(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [
        Rule(Match(call=3), answer="third call"),
        Rule(Match(occurrence=2, prompt="a"), answer="second a"),
        Rule(Match(header=("X-Stainless-Lang", "python")), answer="any"),
    ]
    asked = ["a", "a", "b", "a"]
    assert [await ask(openai_client, "chat", p) for p in asked] == ["any", "second a", "third call", "any"]


async def test_a_reset_forgets_what_was_counted(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [Rule(answer="once", times=1), Rule(answer="later")]
    assert await ask(openai_client, "chat") == "once"
    model_server.reset()
    assert await ask(openai_client, "chat") == "once"
    assert [record.number for record in model_server.ledger.calls] == [1]


@pytest.mark.parametrize("shape", [ErrorShape.DETAIL, ErrorShape.OPENAI])
@pytest.mark.parametrize(("missing", "there"), [("responses", "chat"), ("chat", "responses")])
async def test_a_server_may_have_only_one_of_the_apis(missing: str, there: str, shape: ErrorShape) -> None:
    async with (
        ModelServer(missing_shape=shape, responses=missing != "responses", chat=missing != "chat") as server,
        client_of(server) as client,
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            await ask(client, missing)
        body = caught.value.response.json()
        assert (body == {"detail": "Not Found"}) == (shape is ErrorShape.DETAIL)
        assert ("error" in body) == (shape is ErrorShape.OPENAI)
        assert await ask(client, there)


async def test_a_key_can_be_required(model_server: ModelServer) -> None:
    model_server.switch(require_key="right")
    async with client_of(model_server, key="wrong") as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            await ask(client, "chat")
    assert caught.value.code == "invalid_api_key"
    async with client_of(model_server, key="right") as client:
        assert await ask(client, "chat")
    assert "right" not in str(model_server.ledger.calls)


async def test_an_unknown_model_a_long_prompt_and_a_schema_can_be_refused(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.switch(models=("large",))
    with pytest.raises(openai.NotFoundError) as unknown:
        await ask(openai_client, "responses")
    assert unknown.value.code == "model_not_found"
    model_server.switch(models=None, context_tokens=10)
    with pytest.raises(openai.BadRequestError) as long:
        await ask(openai_client, "chat", "x" * 41)
    assert long.value.code == "context_length_exceeded"
    model_server.switch(context_tokens=None, schema_support=False)
    with pytest.raises(openai.BadRequestError) as chat:
        await openai_client.chat.completions.parse(model="small", messages=[], response_format=Vote)
    assert chat.value.param == "response_format"
    with pytest.raises(openai.BadRequestError) as responses:
        await openai_client.responses.parse(model="small", input="go", text_format=Vote)
    assert responses.value.param == "text.format"
    assert await ask(openai_client, "chat")


async def test_a_schema_can_be_refused_for_streams_alone(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.switch(schema_streaming=False)
    with pytest.raises(openai.BadRequestError, match="does not support streaming") as chat:
        async with openai_client.chat.completions.stream(model="small", messages=[], response_format=Vote):
            pass
    assert chat.value.param == "response_format"
    with pytest.raises(openai.BadRequestError, match="does not support streaming") as responses:
        async with openai_client.responses.stream(model="small", input="go", text_format=Vote):
            pass
    assert responses.value.param == "text.format"
    assert (await openai_client.responses.parse(model="small", input="go", text_format=Vote)).output_parsed
    assert await stream_text(openai_client, "responses")


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_rules_and_the_ledger_know_tools_and_what_they_answered(
    openai_client: AsyncOpenAI, model_server: ModelServer, api: str
) -> None:
    calling = ToolCalls([ToolCall("look", {"at": "it"})])
    model_server.rules = [Rule(Match(tools=True, tool_results=0), answer=calling), Rule(answer="seen")]
    described: dict[str, Any] = {"name": "look", "parameters": {"type": "object"}}
    if api == "responses":
        tool: Any = {"type": "function", **described}
        asked = await openai_client.responses.create(model="small", input="go", tools=[tool])
        (call,) = asked.output
        assert call.type == "function_call"
        back: Any = [
            call.to_dict(),
            {"type": "function_call_output", "call_id": call.call_id, "output": "red"},
        ]
        told = await openai_client.responses.create(
            model="small", input=back, tools=[tool], tool_choice="none"
        )
        assert told.output_text == "seen"
    else:
        tool = {"type": "function", "function": described}
        start: Any = [{"role": "user", "content": "go"}]
        said = await openai_client.chat.completions.create(model="small", messages=start, tools=[tool])
        message = said.choices[0].message
        assert message.tool_calls is not None
        back = [*start, message.to_dict(), {"role": "tool", "tool_call_id": "1", "content": "red"}]
        end = await openai_client.chat.completions.create(
            model="small", messages=back, tools=[tool], tool_choice="none"
        )
        assert end.choices[0].message.content == "seen"
    first, second = model_server.ledger.calls
    assert (first.tools, first.tool_results) == (("look",), ())
    assert (second.tools, second.tool_results) == ((), ("red",))
    model_server.switch(tool_support=False)
    assert await ask(openai_client, api)
    tool = {"type": "function", "strict": False, **described}
    with pytest.raises(openai.BadRequestError, match="does not support tools"):
        await openai_client.responses.create(model="small", input="go", tools=[tool])


async def test_a_server_that_stopped_is_unreachable_and_comes_back_at_the_same_address(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    assert await ask(openai_client, "chat")
    await model_server.stop()
    with pytest.raises(openai.APIConnectionError):
        await ask(openai_client, "chat")
    await model_server.start()
    assert await ask(openai_client, "chat")


def test_rules_are_read_from_json() -> None:
    rule = rule_from_json(
        {
            "match": {"prompt": "split", "header": ["X-A", "1"]},
            "fault": {"kind": "error", "status": 429, "retry_after": 2},
            "latency": {"median": 0.5},
            "times": 3,
        }
    )
    assert rule.match == Match(prompt="split", header=("X-A", "1"))
    assert rule.fault == error(429, retry_after=2)
    assert rule.times == 3
    assert rule_from_json({"fault": {"kind": "hang"}}).fault == Fault(FaultKind.HANG)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"mach": {}, "answer": "x"}, "'mach'"),
        ({"match": {"promt": "x"}, "answer": "x"}, "promt"),
        ({"fault": {"kind": "explode"}}, "kind"),
        ({"fault": {"kind": "error", "status": 200}}, "between 400 and 599"),
        ({"match": {}}, "an answer, a fault or a latency"),
    ],
)
def test_a_wrong_rule_is_named(item: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rule_from_json(item)
