"""What a judge may write and have it taken for its answer: anything, as long as it says something of its own."""

import json

import pytest

from parley.orchestrator.model.errors import UnusableAnswerError
from parley.orchestrator.model.tasks import user_part
from parley.orchestrator.phases.usable import create_check
from parley.v1.debate_pb2 import Reply

QUESTION = "How many processes do we need?"
WORK = "Keep one process: 500 requests a second are few.\nPosition: 1"
TASK = "Write the answer. Score the work of every agent from 0 to 10, and be strict about it in any case."
PROMPT = (
    user_part(f"The question:\n{QUESTION}"),
    user_part(f"Final proposal of agent A:\n{WORK}"),
    user_part(TASK),
)
SCHEMA = json.dumps({"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}})


def check(text: str) -> None:
    create_check(QUESTION, PROMPT, [WORK], SCHEMA)(Reply(text=text))


@pytest.mark.parametrize(
    "text",
    [
        "Keep one process.",
        "Yes.",
        "1",
        "一个进程就够了。",
        WORK,
        "I cannot recommend more than one process.",
        "Unfortunately I cannot answer that with certainty, but one process is enough.",
        "I'm sorry to say it: two. " + "That is why. " * 60,
        "<html><body><h1>One</h1><p>500 requests a second are few.</p></body></html>",
        "Set it to `{}`, and all is well.",
        '```json\n{"processes": 1}\n```',
        f"{TASK}\n" + "One process is enough for all that comes, since it is not much. " * 5,
        f"{TASK}\n" + "Enough. " * 41,
        "Write the answer to the disk, from one process.",
    ],
)
def test_what_says_something_is_an_answer(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("👍 … !", "says nothing in words"),
        ("null", "says nothing in words"),
        ("7", "a number that no proposal holds (7)"),
        ("I'm sorry, but I can't assist with that request.", "it refuses: I'm sorry"),
        ("I\u2019m unable to help with this.", "it refuses"),
        ("As an AI language model, I cannot provide an opinion.", "it refuses"),
        ("<!doctype html>\n<html><head><title>502 Bad Gateway</title></head></html>", "page of an error"),
        (QUESTION, "repeats what was asked"),
        ("  how many processes do we need", "repeats what was asked"),
        ("\n\n".join(part.text for part in PROMPT), "repeats what was asked"),
        (f"{TASK}\n\n{SCHEMA}", "repeats what was asked"),
        (f"{TASK}\n" + "Enough. " * 40, "repeats what was asked"),
        (
            "Score the work of every agent from 0 to 10, and be strict about it in any case.",
            "repeats what was asked",
        ),
        ('{"type": "object"}', "repeats the form"),
        (f"```json\n{SCHEMA}\n```", "repeats the form"),
        ('{"name": "search", "arguments": {"query": "processes"}}', "only calls a tool"),
    ],
)
def test_what_says_nothing_of_its_own_is_no_answer(text: str, fault: str) -> None:
    with pytest.raises(UnusableAnswerError) as caught:
        check(text)
    assert fault in str(caught.value)
