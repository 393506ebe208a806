"""A kind of provider is a module and its name; one can be handed in from outside."""

from pathlib import Path

import pytest

from parley.gateway.providers.kinds import KINDS
from parley.gateway.settings import GatewaySettings
from parley.runtime.errors import ConfigurationError
from tests.integration.gateway import echo_provider
from tests.integration.gateway.harness import request, run_gateway

FILE = """
providers:
  - name: mountain
    kind: parrot
    base_url: http://echo.invalid/v1
"""


def settings(folder: Path, text: str = FILE) -> GatewaySettings:
    file = folder / "agents.yaml"
    file.write_text(text)
    return GatewaySettings(agents_file=file, local_model="off", openai_api_key=None, openrouter_api_key=None)


async def test_a_provider_of_a_kind_from_outside_answers_a_call(tmp_path: Path) -> None:
    kinds = {**KINDS, echo_provider.KIND.name: echo_provider.KIND}
    async with run_gateway(settings(tmp_path), kinds=kinds) as gateway:
        heard = await gateway.ask(request("Is water wet?"))
        named = await gateway.ask(request("Is it?", routes=["mountain/valley"]))
    assert (heard.answer.text, heard.answer.route) == ("Is water wet?", "mountain/canyon")
    assert "".join(delta.text for delta in heard.deltas) == "Is water wet?"
    assert (heard.answer.usage.requests, heard.answer.usage.input_tokens > 0) == (1, True)
    assert (named.answer.text, named.answer.model) == ("Is it?", "valley")


async def test_a_kind_that_nobody_handed_in_stops_the_start_and_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"agents\.yaml:4: providers\[0\]\.kind: .*parrot; kinds: azure"
    ):
        async with run_gateway(settings(tmp_path)):
            pass
