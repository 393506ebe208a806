"""A first debate whose endpoint is wrong: it ends at once, with the likely cause, and is not waited for."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Final

import pytest

from parley.cli.errors import PROVIDER_FAILED
from tests.support.command import Command, Ended

pytestmark = pytest.mark.timeout(300)  # a start takes its time on a machine that is busy

MANY = "architect,performance,security,testing,simplicity,data-modeling"
"""More agents than failures open a breaker."""
_CALL: Final = "/v1/chat/completions"


@contextmanager
def serve_answer(status: int, body: object, *, together: int = 0) -> Iterator[tuple[str, list[str]]]:
    """An HTTP server that always answers the same; gives its address and the paths that were asked for.

    With `together`, the first call of a model is answered once so many are there, and the others are not.
    """
    changed, left = threading.Condition(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        asked: ClassVar[list[str]] = []

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with changed:
                is_first = _CALL not in self.asked
                self.asked.append(self.path)
                changed.notify_all()
                if together and is_first:
                    changed.wait_for(lambda: self.asked.count(_CALL) == together, 120)
            if together and not is_first:
                left.wait()
                return
            self._answer()

        def do_GET(self) -> None:
            self.asked.append(self.path)
            self._answer()

        def _answer(self) -> None:
            said = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", Handler.asked
    finally:
        left.set()
        server.shutdown()
        thread.join()
        server.server_close()


def debate(folder: Path, url: str, **variables: str) -> Ended:
    """Hold a debate of many agents; it must not have waited for anything."""
    asked = ["debate", "Which?", "--agents", MANY, "--rounds", "1", "--progress", "lines"]
    given = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-wrong-0123456789", **variables}
    ended = Command(asked, folder, given).end()
    assert ended.code == PROVIDER_FAILED
    assert not [line for line in ended.err if "wait" in line.lower()]
    return ended


@pytest.mark.parametrize("model", [{}, {"PARLEY_MODEL": "m"}], ids=["no model", "a model"])
def test_a_port_on_which_nothing_listens(model: dict[str, str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        ended = debate(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}/v1", **model)
    assert "PROVIDER_UNREACHABLE" in ended.err[-1]
    assert ended.err[-1].endswith("nothing listens there; is the server running, and the port its own?")


def test_a_host_that_is_not_there(tmp_path: Path) -> None:
    ended = debate(tmp_path, "http://no-such-host.invalid/v1", PARLEY_MODEL="m")
    assert "PROVIDER_UNREACHABLE" in ended.err[-1]
    assert ended.err[-1].endswith("there is no such host")


@pytest.mark.parametrize(
    ("path", "cause"), [("", "most base URLs end in /v1, try "), ("/v1", "no OpenAI-compatible API")]
)
def test_an_address_without_an_api(path: str, cause: str, tmp_path: Path) -> None:
    with serve_answer(404, "404 page not found") as (url, _):
        ended = debate(tmp_path, f"{url}{path}", PARLEY_MODEL="m")
    assert cause in ended.err[-1]


@pytest.mark.parametrize("model", [{}, {"PARLEY_MODEL": "m"}], ids=["no model", "a model"])
def test_a_web_page(model: dict[str, str], tmp_path: Path) -> None:
    with serve_answer(200, "<!doctype html><title>Welcome</title>") as (url, _):
        ended = debate(tmp_path, f"{url}/v1", **model)
    assert "a web page answers, and no JSON" in ended.err[-1]


WRONG_KEY = {
    "error": {
        "message": "Incorrect API key provided.",
        "type": "invalid_request_error",
        "code": "invalid_api_key",
    }
}


def test_a_key_that_is_wrong_where_a_model_is_looked_for(tmp_path: Path) -> None:
    with serve_answer(401, WRONG_KEY) as (url, asked):
        ended = debate(tmp_path, f"{url}/v1")
    assert_names_key(ended)
    assert _CALL not in asked, "there is no model to call"


def test_a_key_that_is_wrong_ends_the_debate_by_its_first_refusal_though_other_calls_are_on_their_way(
    tmp_path: Path,
) -> None:
    at_once = len(MANY.split(",")) + 1
    with serve_answer(401, WRONG_KEY, together=at_once) as (url, asked):
        ended = debate(tmp_path, f"{url}/v1", PARLEY_MODEL="m")
    assert_names_key(ended)
    assert len([line for line in ended.err if "failed" in line]) == 1
    assert asked.count(_CALL) == at_once, "each agent, and the judge"


def assert_names_key(ended: Ended) -> None:
    assert "PROVIDER_AUTH" in ended.err[-1]
    assert ended.err[-1].endswith("; the key is that of OPENAI_API_KEY: set the right one")
    assert ".;" not in ended.err[-1]


def test_a_model_that_ollama_does_not_have(tmp_path: Path) -> None:
    said = {
        "error": {
            "message": 'model "qwen3:8b" not found, try pulling it first',
            "type": "api_error",
            "code": None,
        }
    }
    with serve_answer(404, said) as (url, _):
        ended = debate(tmp_path, f"{url}/v1", PARLEY_MODEL="qwen3:8b")
    assert 'model "qwen3:8b" not found' in ended.err[-1]
    assert ended.err[-1].endswith(
        "it has no model of this name; PARLEY_MODEL or --model names one that it has"
    )
