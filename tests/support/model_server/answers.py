"""Makes the reply to a call: what a rule says, else a text or an instance that follows from the request alone."""

import json
from dataclasses import replace
from hashlib import blake2b
from random import Random
from time import time

from tests.support.grounding_answers import asks_for_grounds, grounds
from tests.support.grouping_answers import asks_for_groups, group_alike
from tests.support.model_server.faults import Fault, FaultKind
from tests.support.model_server.rules import Answer, Call, Reasoned, ToolCall, ToolCalls
from tests.support.model_server.schema_instance import instance
from tests.support.model_server.wire import BAD_BYTES_MARK, Reply, find_schema
from tests.support.model_server.words import count_tokens, sentence

_ASKED_FOR_POSITION = "line `Position: `"


def digest_of(path: str, model: str, prompt: str) -> str:
    """Return what names a prompt to a model; both text APIs give the same."""
    kind = "embed" if path == "/v1/embeddings" else "text"
    content = f"{kind}\0{model}\0{prompt}".encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=8).hexdigest()


def make_up(call: Call, words: int, *, states_position: bool = False) -> str:
    """Return the server's own answer: an instance of the schema asked for, else a sentence with a short digest.

    With `states_position` a text ends with the line of a position, if the prompt asks for one.

    Raises UnsupportedSchemaError for a schema it can make no instance of.
    """
    seed = int(call.digest, 16)
    schema = find_schema(call.body)
    if schema is not None:
        if asks_for_grounds(schema):
            return grounds(json.dumps(schema))
        is_grouping = asks_for_groups(schema)
        return json.dumps(group_alike(call.prompt) if is_grouping else instance(schema, seed))
    answer = f"Answer {call.digest[:8]}: {sentence(Random(seed), words)}."
    if states_position and _ASKED_FOR_POSITION in call.prompt:
        # The numbers differ, so that no two of them are the same answer.
        return f"{answer}\nPosition: Take plan {int(call.digest[:5], 16)} for the orders of all regions."
    return answer


def reply_to(call: Call, answer: Answer, reply_number: int) -> Reply:
    """Return the reply that a rule's answer, or one made up, is for this call."""
    if callable(answer):
        answer = answer(call)
    reasoned = answer if isinstance(answer, Reasoned) else Reasoned("")
    if isinstance(answer, Reasoned):
        answer = answer.answer
    calls: tuple[ToolCall, ...] = ()
    if isinstance(answer, ToolCalls):
        text, calls = answer.text, tuple(answer.calls)
    else:
        text = answer if isinstance(answer, str) else json.dumps(answer)
    spoken = text + "".join(json.dumps(dict(tool.arguments)) for tool in calls)
    return Reply(
        number=reply_number,
        model=call.model,
        text=text,
        tool_calls=calls,
        tokens_in=count_tokens(call.prompt),
        tokens_out=count_tokens(spoken) + count_tokens(reasoned.reasoning),
        created=int(time()),
        reasoning=reasoned.reasoning,
        reasoning_hidden=reasoned.hidden,
        reasoning_tokens=count_tokens(reasoned.reasoning),
    )


def spoil(reply: Reply, fault: Fault) -> Reply:  # noqa: PLR0911 - one line a fault
    """Return the reply with the fault in its text; a fault that is not one of text changes nothing."""
    match fault.kind:
        case FaultKind.CONTROL_CHARACTERS:
            return replace(reply, text=f"\x00\x1b[31m{reply.text}\x07\r\x00 \u202eend\ufffe\x9f")
        case FaultKind.BAD_UTF8:
            return replace(reply, text=reply.text + BAD_BYTES_MARK)
        case FaultKind.HUGE_ANSWER:
            word = "huge" * 250 + " "  # few words, so that its length is what there is to read
            text = (word * (fault.size // len(word) + 1))[: fault.size]
            return replace(reply, text=text, tokens_out=count_tokens(text))
        case FaultKind.EMPTY_ANSWER:
            return replace(reply, text="", tool_calls=(), tokens_out=0)
        case FaultKind.CUT_SHORT:
            text = reply.text[: len(reply.text) // 2]
            return replace(reply, text=text, tokens_out=count_tokens(text), cut_short=True)
        case FaultKind.SPENT_ON_REASONING:
            reasoning = reply.reasoning or reply.text
            tokens = count_tokens(reasoning)
            return replace(
                reply,
                text="",
                tool_calls=(),
                reasoning=reasoning,
                tokens_out=tokens,
                reasoning_tokens=tokens,
                cut_short=True,
            )
        case FaultKind.BROKEN_STRUCTURE:
            return replace(reply, text='{"position": "the plan hol')
        case FaultKind.WRONG_STRUCTURE:
            return replace(reply, text='{"nothing_you_asked_for": [1, 2, 3]}')
        case _:
            return reply
