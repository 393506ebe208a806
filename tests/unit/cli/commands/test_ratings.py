"""`parley ratings` before an orchestrator that passes its calls on to a ratings service."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import from_rpc_error
from parley.v1 import ratings_pb2, ratings_pb2_grpc
from tests.support.real_services import free_address, ratings_at
from tests.support.scripted_orchestrator import ScriptedOrchestrator, refuse, scripted

THREE = ["third-a", "third-b", "third-c"]
AGENTS = [f"agent-{number:03}" for number in range(250)]


class Passing(ScriptedOrchestrator):
    """Passes calls on, as an orchestrator does."""

    service = ""

    def ListAgentRatings(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._ask("ListRatings", request, context)

    def ListAgentMatches(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._ask("ListMatches", request, context)

    def _ask(self, method: str, request: Any, context: Any) -> Any:
        create_stub: Any = ratings_pb2_grpc.RatingsServiceStub  # its types know only asynchronous channels
        with grpc.insecure_channel(self.service) as channel:
            try:
                return getattr(create_stub(channel), method)(request, timeout=20)
            except grpc.RpcError as error:
                failed: Any = error
                refuse(context, from_rpc_error(failed))
                raise


@pytest.fixture(scope="module")
def address(service: str) -> Iterator[str]:
    passing = Passing()
    passing.service = service
    with scripted(passing):
        yield passing.address


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    at, folder = free_address(), tmp_path_factory.mktemp("ratings")
    ready, loops, stop = threading.Event(), [], asyncio.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with ratings_at(at, folder):
            await fill(at)
            await fill_with_three(at)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    yield at
    loops[0].call_soon_threadsafe(stop.set)
    thread.join()


async def fill(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = ratings_pb2_grpc.RatingsServiceStub(channel)
        for number in range(125):
            one, other = AGENTS[2 * number : 2 * number + 2]
            results = [
                ratings_pb2.MatchResult(agent_id=one, score=8),
                ratings_pb2.MatchResult(agent_id=other, score=8 if number else 5),
            ]
            domain = "" if number else "storage"
            answers = (
                [ratings_pb2.JudgedAnswer(agent_id=one, right=True, confidence=0.8)] if not number else []
            )
            await stub.RecordMatch(
                ratings_pb2.RecordMatchRequest(
                    debate_id=f"deb-{number}", domain=domain, results=results, answers=answers
                )
            )


async def fill_with_three(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        results = [
            ratings_pb2.MatchResult(agent_id=each, score=9 if each == "third-a" else 5) for each in THREE
        ]
        request = ratings_pb2.RecordMatchRequest(debate_id="deb-three", domain="three", results=results)
        await ratings_pb2_grpc.RatingsServiceStub(channel).RecordMatch(request)


def test_ratings_are_a_table_best_first_whatever_a_page_holds(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "AGENT"
    assert [line.split()[0] for line in lines] == [
        "agent-000",
        THREE[0],
        *AGENTS[2:],
        *THREE[1:],
        "agent-001",
    ]
    assert lines[0].split()[:7] == ["agent-000", "1516", "1", "1", "1", "0", "0"]
    assert lines[-1].split()[:7] == ["agent-001", "1484", "1", "1", "0", "0", "1"]


def test_in_a_debate_of_three_the_columns_of_duels_add_up(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address, "--domain", "three"]) == 0
    head, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    shown = slice(head.index("DEBATES"), head.index("LOST") + 1)
    assert head[shown] == ["DEBATES", "DUELS", "WON", "DRAWN", "LOST"]
    assert [line[shown] for line in lines] == [
        ["1", "2", "2", "0", "0"],
        ["1", "2", "0", "1", "1"],
        ["1", "2", "0", "1", "1"],
    ]


def test_how_well_stated_confidence_fits_is_shown_where_it_was_stated(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address, "--domain", "storage"]) == 0
    head, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
    shown = slice(head.index("JUDGED"), head.index("ECE") + 1)
    assert head[shown] == ["JUDGED", "RIGHT", "BRIER", "ECE"]
    assert first[shown] == ["1", "1", "0.04", "0.20"]
    assert second[shown] == ["0", "0", "-", "-"]
    assert run(["ratings", "--server", address, "--domain", "storage", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["brier_score"] == pytest.approx(0.04)
    assert first["expected_calibration_error"] == pytest.approx(0.2)
    assert second["brier_score"] is second["expected_calibration_error"] is None


def test_a_domain_has_ratings_of_its_own(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ratings", "--server", address, "--domain", "storage"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "AGENT",
        "agent-000",
        "agent-001",
    ]


def test_ratings_are_json_too(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ratings", "--server", address, "--domain", "storage", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["agent_id"], first["wins"], second["losses"]) == ("agent-000", 1, 1)
    assert run(["ratings", "--server", address, "--domain", "cooking", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_domain_without_matches_is_an_empty_table_and_a_word(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address, "--domain", "cooking"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert said.err == "No match is recorded in the domain cooking.\n"


def test_a_domain_that_cannot_be_is_refused_in_one_line(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address, "--domain", "x" * 65]) == 2
    assert capsys.readouterr().err.startswith("parley: domain: ")


def test_how_a_rating_came_about_is_a_table_latest_debate_first(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ratings", "--server", address, "--agent", "agent-000"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["DEBATE", "RECORDED", "DOMAIN", "SCORE", "RATING", "CHANGE", "CORRECTED"]
    assert (line.split()[0], line.split()[-4:]) == ("deb-0", ["storage", "8", "1516", "+16.0"])
    assert run(["ratings", "--server", address, "--agent", "agent-000", "--json"]) == 0
    assert [each["debate_id"] for each in json.loads(capsys.readouterr().out)] == ["deb-0"]
    assert run(["ratings", "--server", address, "--agent", "nobody", "--domain", "storage"]) == 0
    assert capsys.readouterr().err == "No match of nobody is recorded in the domain storage.\n"
