"""Who answers where nobody said who is to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from parley.cli.__main__ import run
from parley.cli.commands.connection import Connection
from parley.cli.commands.models import (
    GOES_ON_WITHOUT_A_KEY,
    WITH_A_KEY,
    answers_for_want_of_a_key,
    models_line,
)
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import DebateSpec, Participant
from parley.v1.gateway_pb2 import FoundServer, ListRoutesResponse, RouteStatus, UnlistedModel
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator

SMALL = RouteStatus(name="local/smollm2", provider="local", model="smollm2", local=True, demonstration=True)
OLLAMA = FoundServer(
    provider="ollama",
    title="Ollama",
    base_url="http://127.0.0.1:11434/v1",
    models=["llama3.2:3b", "qwen3:8b"],
)
VLLM = FoundServer(provider="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", models=["m"])


def line(spec: DebateSpec | None = None, *, own: bool = True, **listed: Any) -> str:
    return models_line(spec or DebateSpec(), ListRoutesResponse(**listed), own=own) or ""


def test_the_small_model_is_named_and_called_a_demonstration() -> None:
    said = line(routes=[SMALL], default_routes=["local/smollm2"])
    assert said.startswith("No key and no base URL is set: the small model smollm2 answers on this machine.")
    assert "demonstration" in said
    assert line(routes=[SMALL], default_routes=["local/smollm2"], own=False).startswith(
        "The Parley that runs was started without a key: the small model smollm2"
    )


def test_a_model_that_was_wanted_and_is_not_asked_is_named() -> None:
    said = line(routes=[SMALL], default_routes=["local/smollm2"], ignored_model="qwen3:8b")
    assert said.startswith(
        "No key and no base URL is set: the small model smollm2 answers on this machine, and not qwen3:8b of PARLEY_MODEL. "
    )


def test_what_was_found_what_is_used_and_how_to_choose_are_one_line() -> None:
    said = line(found_servers=[OLLAMA], default_routes=["ollama/llama3.2:3b"])
    assert said == (
        "No key and no base URL is set, and this machine runs Ollama (http://127.0.0.1:11434/v1): ollama/llama3.2:3b "
        "answers; PARLEY_MODEL=… takes another of the 2 models there; PARLEY_LOCAL_SERVERS=off leaves it alone."
    )


def test_several_servers_are_named_in_the_order_in_which_they_are_asked() -> None:
    said = line(found_servers=[OLLAMA, VLLM], default_routes=["ollama/llama3.2:3b", "vllm/m"])
    assert "runs Ollama (http://127.0.0.1:11434/v1) and vLLM (http://127.0.0.1:8000/v1): " in said
    assert ": ollama/llama3.2:3b, then vllm/m answers; " in said


def test_where_somebody_chose_the_routes_are_named_with_their_hosts() -> None:
    routes = [
        RouteStatus(name="house/m", host="10.0.0.7:8000"),
        RouteStatus(name="openai/m", host="api.openai.com"),
    ]
    assert line(routes=routes, default_routes=["openai/m", "house/m"]) == (
        "Models: openai/m at api.openai.com, house/m at 10.0.0.7:8000"
    )
    team = [Participant(agent=Agent(id="ada", routes=["openai/m"]))]
    chosen = DebateSpec(agents=team, judge=team[0])
    said = line(chosen, routes=routes, found_servers=[OLLAMA], default_routes=["ollama/llama3.2:3b"])
    assert said == "Model: openai/m at api.openai.com"
    assert line(default_routes=["openai/gpt-5-mini"]) == "", "nothing is known of it yet"


def test_a_host_that_has_not_listed_its_models_is_named_as_the_one_that_chooses() -> None:
    silent = RouteStatus(name="openai", provider="openai", host="10.0.0.7:8000")
    assert line(unnamed_defaults=[silent]) == (
        "Model: one that 10.0.0.7:8000 chooses (it has not listed its models yet)"
    )
    known = RouteStatus(name="house/m", host="10.0.0.8:8000")
    assert line(routes=[known], default_routes=["house/m"], unnamed_defaults=[silent]) == (
        "Models: house/m at 10.0.0.8:8000, one that 10.0.0.7:8000 chooses (it has not listed its models yet)"
    )
    team = [Participant(agent=Agent(id="ada", routes=["house/m"]))]
    chosen = DebateSpec(agents=team, judge=team[0])
    assert line(chosen, routes=[known], unnamed_defaults=[silent]) == "Model: house/m at 10.0.0.8:8000"


def test_a_tiny_model_of_ones_own_is_called_a_demonstration_too() -> None:
    tiny = RouteStatus(name="openai/smollm", provider="openai", model="smollm", demonstration=True)
    said = line(routes=[tiny], default_routes=["openai/smollm"])
    assert said.startswith("The model smollm is very small. This is a demonstration")
    assert "No key" not in said


def test_only_a_debate_of_the_small_model_of_this_machine_wants_a_key() -> None:
    small = ListRoutesResponse(routes=[SMALL], default_routes=["local/smollm2"])
    assert answers_for_want_of_a_key(DebateSpec(), small)
    chosen = [Participant(agent=Agent(id="ada", routes=["openai/m"]))]
    assert not answers_for_want_of_a_key(DebateSpec(agents=chosen, judge=chosen[0]), small)
    tiny = RouteStatus(name="openai/smollm", provider="openai", model="smollm", demonstration=True)
    assert not answers_for_want_of_a_key(
        DebateSpec(), ListRoutesResponse(routes=[tiny], default_routes=["openai/smollm"])
    )


def test_a_debate_of_other_models_that_the_small_one_goes_on_with_is_a_warning_with_what_to_do(
    orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.script = lambda debate: debate.fail("PROVIDER_AUTH", "no", "ada", "round 1 proposal")
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 3
    connect_to_small_model(orchestrator, monkeypatch, own=True)
    capsys.readouterr()
    assert run(["debate", "--resume", DEBATE_ID]) == 0
    assert GOES_ON_WITHOUT_A_KEY in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("own", [True, False])
def test_what_a_key_would_change_is_said_in_the_last_line_of_a_system_of_ones_own(
    own: bool,
    orchestrator: ScriptedOrchestrator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect_to_small_model(orchestrator, monkeypatch, own=own)
    assert run(["debate", "Which?"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line]
    assert (said[-1] == WITH_A_KEY) is own
    assert (WITH_A_KEY in said) is own


def connect_to_small_model(
    orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    """Let commands run on a system in which the small model answers for want of a key."""

    @asynccontextmanager
    async def connect(*_: object, **__: object) -> AsyncIterator[Connection]:
        yield Connection(orchestrator.address, gateway="127.0.0.1:1", own=own)

    async def list_small(*_: object, **__: object) -> ListRoutesResponse:
        return ListRoutesResponse(routes=[SMALL], default_routes=["local/smollm2"])

    monkeypatch.setattr("parley.cli.commands.debate.connect", connect)
    monkeypatch.setattr("parley.cli.commands.debate.report_models", list_small)


@pytest.mark.parametrize(
    ("successor", "instead"),
    [
        ("gpt-6-mini", "gpt-6-mini is likely to be what took its place: PARLEY_MODEL=gpt-6-mini"),
        ("", "PARLEY_MODEL=… names one that it lists"),
    ],
)
def test_a_usual_model_that_its_seller_lists_no_more_is_a_warning_with_what_to_do(
    successor: str, instead: str
) -> None:
    gone = UnlistedModel(route="openai/gpt-5-mini", successor=successor)
    assert line(default_routes=[gone.route], unlisted_defaults=[gone]) == (
        f"warning: openai does not list gpt-5-mini, which is asked where nobody names a model; {instead}"
    )
    team = [Participant(agent=Agent(id="ada", routes=["openai/m"]))]
    assert (
        line(DebateSpec(agents=team, judge=team[0]), default_routes=[gone.route], unlisted_defaults=[gone])
        == ""
    )
