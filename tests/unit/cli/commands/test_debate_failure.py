"""What is said of an endpoint that did not answer."""

import pytest

from parley.cli.commands.debate_failure import explain_provider_failure
from parley.config.file import Provider

OPENAI = Provider("openai", "openai", api_key_env="OPENAI_API_KEY", declared=False)
LAB = Provider("lab", "openai-compatible", base_url="https://lab:8443/v1")


@pytest.mark.parametrize(
    ("url", "message", "said"),
    [
        ("http://h:1", "openai/m: 404 Not Found", "most base URLs end in /v1, try http://h:1/v1"),
        ("http://h:1/", "openai: 404 Not Found", "most base URLs end in /v1, try http://h:1/v1"),
        (
            "http://h:1/v1",
            "openai: 404 Not Found",
            "it may have no list of models; name one with PARLEY_MODEL",
        ),
        (
            "http://h:1/v1",
            "openai/m: 404 model 'm' not found",
            "it has no model of this name; PARLEY_MODEL or --model names one that it has",
        ),
        (
            "http://h:1/v1",
            "openai/m: 404 The model `m` does not exist",
            "it has no model of this name; PARLEY_MODEL or --model names one that it has",
        ),
        (
            "http://h:1/v1",
            "no route lets a call through; openai/m failed with: a web page answers, and no JSON",
            "no OpenAI-compatible API answers under this address",
        ),
        (
            "http://h:1/v1",
            "openai: a web page answers, and no JSON",
            "no OpenAI-compatible API answers under this address",
        ),
        (
            "https://h:1/v1",
            "openai/m: cannot connect to h:1: [SSL: WRONG_VERSION_NUMBER] wrong version number",
            "what listens there speaks http, try http://h:1/v1",
        ),
        (
            "http://h:1/v1",
            "openai/m: the answer is not proper HTTP: BadStatusLine",
            "what listens there may speak https, try https://h:1/v1",
        ),
        (
            "http://h:1/v1",
            "openai/m: cannot connect to h:1: connection refused",
            "nothing listens there; is the server running, and the port its own?",
        ),
        (
            "http://h:1/v1",
            "openai/m: cannot connect to h:1: Name or service not known",
            "there is no such host",
        ),
        (
            "http://h:1/v1",
            "openai/m: the endpoint was silent for 30 s",
            "it takes requests and does not answer them; does it work, or is its model still loading?",
        ),
    ],
)
def test_the_address_and_the_likely_cause_are_named(
    url: str, message: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert explain_provider_failure((LAB, OPENAI), message) == f"; asked {url}: {said}"


def test_the_address_is_that_of_the_provider_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://h:1/v1")
    told = "openai/m: 404 Not Found; no OpenAI-compatible API answers there, look at the path of its base URL"
    assert explain_provider_failure((LAB, OPENAI), told) == "; asked http://h:1/v1"
    assert explain_provider_failure((LAB, OPENAI), "lab/m: 503 busy") == "; asked https://lab:8443/v1"
    assert explain_provider_failure((LAB, OPENAI), "other/m: 503 busy") == ""


def test_no_key_in_an_address_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@h:1/v1?key=secret")
    assert explain_provider_failure((OPENAI,), "openai/m: 503 busy") == "; asked http://h:1/v1"


def test_without_an_address_of_ones_own_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert explain_provider_failure((OPENAI,), "openai/m: 404 Not Found") == ""


def test_an_offline_machine_is_the_likely_cause_if_a_makers_own_host_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    message = "openai/m: cannot connect to api.openai.com:443: Name or service not known"
    assert explain_provider_failure((OPENAI,), message).startswith(
        "; is this machine connected to the internet?"
    )
