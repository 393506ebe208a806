import base64
import json
from array import array
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

from tests.support.model_server import Call, Match, ModelServer, Rule, ToolCall, ToolCalls
from tests.unit.support.clients import ask, client_of, deltas

BOTH = pytest.mark.parametrize("api", ["responses", "chat"])
PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


class Position(BaseModel):
    claim: str
    confidence: float = Field(ge=0, le=1)
    reasons: list[str]


async def test_both_apis_give_a_prompt_the_same_answer_and_another_prompt_another(
    openai_client: AsyncOpenAI,
) -> None:
    by_responses = await ask(openai_client, "responses")
    assert by_responses == await ask(openai_client, "chat")
    assert by_responses == await ask(openai_client, "chat")
    assert by_responses != await ask(openai_client, "chat", "Shall we merge it?")


@BOTH
async def test_a_streamed_answer_comes_in_words_that_join_to_the_whole_one(
    openai_client: AsyncOpenAI, api: str
) -> None:
    words = [delta async for delta in deltas(openai_client, api)]
    assert len(words) > 10
    assert "".join(words) == await ask(openai_client, api)


async def test_a_responses_stream_has_the_events_of_the_api_in_order_and_ends_with_usage(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [Rule(answer="one two")]
    stream = await openai_client.responses.create(model="small", input="go", stream=True)
    events = [event async for event in stream]
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(10))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "one two"
    assert last.response.usage is not None
    assert last.response.usage.total_tokens == 3


async def test_the_clients_own_stream_helpers_can_follow_both_apis(openai_client: AsyncOpenAI) -> None:
    async with openai_client.responses.stream(model="small", input="go", text_format=Position) as stream:
        parsed = (await stream.get_final_response()).output_parsed
    assert isinstance(parsed, Position)
    async with openai_client.chat.completions.stream(
        model="small", messages=[{"role": "user", "content": "go"}], response_format=Position
    ) as chunks:
        message = (await chunks.get_final_completion()).choices[0].message
    assert message.parsed == parsed


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_chat_stream_tells_its_usage_last_if_it_was_asked_to(
    openai_client: AsyncOpenAI, wanted: bool
) -> None:
    stream = await openai_client.chat.completions.create(
        model="small",
        messages=[{"role": "user", "content": "go"}],
        stream=True,
        stream_options={"include_usage": wanted},
    )
    chunks = [chunk async for chunk in stream]
    usages = [chunk.usage for chunk in chunks if chunk.usage is not None]
    assert len(usages) == wanted
    assert (chunks[-1].usage is not None) == wanted
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"


async def test_a_structured_answer_is_a_valid_instance_in_both_apis(openai_client: AsyncOpenAI) -> None:
    response = await openai_client.responses.parse(model="small", input="go", text_format=Position)
    completion = await openai_client.chat.completions.parse(
        model="small", messages=[{"role": "user", "content": "go"}], response_format=Position
    )
    assert isinstance(response.output_parsed, Position)
    assert response.output_parsed == completion.choices[0].message.parsed


async def test_an_answer_may_be_a_function_of_the_call_a_value_or_a_text() -> None:
    def answer(call: Call) -> dict[str, Any]:
        return {"asked": call.prompt, "nth": call.occurrence}

    async with ModelServer(answer=answer) as server, client_of(server) as client:
        assert json.loads(await ask(client, "chat", "why")) == {"asked": "why", "nth": 1}
        assert json.loads(await ask(client, "chat", "why")) == {"asked": "why", "nth": 2}
        server.rules = [Rule(Match(prompt="wh"), answer="because")]
        assert await ask(client, "responses", "why") == "because"


async def test_a_rule_may_call_tools_in_both_apis_streamed_or_not(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.rules = [
        Rule(answer=ToolCalls([ToolCall("read_document", {"name": "plan"})], text="One moment."))
    ]
    response = await openai_client.responses.create(
        model="small",
        input="go",
        tools=[{"type": "function", "strict": True, "name": "read_document", "parameters": PARAMETERS}],
    )
    message, call = response.output
    assert message.type == "message"
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments)) == ("read_document", {"name": "plan"})

    async with openai_client.responses.stream(model="small", input="go") as events:
        streamed = (await events.get_final_response()).output[1]
    assert streamed.type == "function_call"
    assert streamed.arguments == call.arguments

    completion = await openai_client.chat.completions.create(
        model="small",
        messages=[{"role": "user", "content": "go"}],
        tools=[{"type": "function", "function": {"name": "read_document", "parameters": PARAMETERS}}],
    )
    assert completion.choices[0].finish_reason == "tool_calls"
    async with openai_client.chat.completions.stream(
        model="small", messages=[{"role": "user", "content": "go"}]
    ) as chunks:
        final = (await chunks.get_final_completion()).choices[0]
    for choice in (completion.choices[0], final):
        assert choice.message.tool_calls is not None
        tool = choice.message.tool_calls[0]
        assert tool.type == "function"
        assert json.loads(tool.function.arguments) == {"name": "plan"}


@pytest.mark.parametrize("encoding", ["float", "base64", None])
async def test_embeddings_are_unit_vectors_and_texts_that_share_words_are_near(
    model_server: ModelServer, encoding: Any
) -> None:
    texts = ["split the service now", "split the service later", "an unrelated remark about cats"]
    extra = {} if encoding is None else {"encoding_format": encoding}
    # The client's own types know only floats, though it asks for base64 and decodes it: so not strict here.
    async with client_of(model_server, strict=False) as client:
        answer = await client.embeddings.create(model="embed", input=texts, dimensions=128, **extra)
    vectors = [item.embedding for item in answer.data]
    if encoding == "base64":
        vectors = [list(array("f", base64.b64decode(str(item)))) for item in vectors]
    near = sum(a * b for a, b in zip(vectors[0], vectors[1], strict=True))
    far = sum(a * b for a, b in zip(vectors[0], vectors[2], strict=True))
    assert [len(vector) for vector in vectors] == [128] * 3
    assert all(sum(x * x for x in vector) == pytest.approx(1, abs=1e-5) for vector in vectors)
    assert near > 0.5
    assert far < 0.3


async def test_the_list_of_models_is_the_models_it_knows(
    openai_client: AsyncOpenAI, model_server: ModelServer
) -> None:
    model_server.switch(models=("small", "large"))
    assert [model.id async for model in openai_client.models.list()] == ["small", "large"]
