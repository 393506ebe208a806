"""Five processes that speak TLS and ask everybody who they are."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import pytest

from parley.client import DebateSpec, DebateStatus, GatewayClient, ParleyClient, ParleyError
from parley.v1.panel_pb2 import PanelSettings
from tests.e2e.harness import SERVICES, System, model_server, system
from tests.support.access import SECRET
from tests.support.certificates import Authority


@dataclass
class Secured:
    services: System
    ca: str
    key: str


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    certificate, key = authority.sign("parley")
    variables = {
        "PARLEY_AUTH": "key",
        "PARLEY_SERVICE_SECRET": SECRET,
        "PARLEY_TLS_CERTIFICATE": str(certificate),
        "PARLEY_TLS_KEY": str(key),
        "PARLEY_CA": str(authority.file),
    }
    with model_server() as models, system(folder, models, variables) as services:
        for name in SERVICES:
            services.start(name)
        services.wait(*SERVICES)
        made = subprocess.run(
            [sys.executable, "-m", "parley.cli", "keys", "add", "ci", "--tenant", "acme"],
            env={"PARLEY_STORE": services.variables["PARLEY_STORE"]},
            capture_output=True,
            text=True,
            check=True,
        )
        yield Secured(services, str(authority.file), made.stdout.strip())


async def test_a_tenants_debate_is_held_and_another_key_sees_nothing(secured: Secured) -> None:
    address = secured.services.addresses["orchestrator"]
    spec = DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1))
    async with ParleyClient(address, token=secured.key, ca=secured.ca) as parley:
        debate = await parley.create_debate(spec)
        events = [each async for each in parley.watch(debate)]
        assert (await parley.get(debate)).status == DebateStatus.DEBATE_STATUS_COMPLETED
        assert events[0].debate_created.requested_by.startswith("ci (key ")  # type: ignore[union-attr]
    async with ParleyClient(address, tenant="acme", token="", ca=secured.ca, patience=0) as nobody:
        with pytest.raises(ParleyError) as caught:
            await nobody.get(debate)
        assert caught.value.code == grpc.StatusCode.UNAUTHENTICATED


async def test_inner_services_let_in_no_client_and_an_operator_who_has_the_secret(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = secured.services.addresses["gateway"]
    async with GatewayClient(address, token=secured.key, ca=secured.ca, patience=0) as gateway:
        with pytest.raises(ParleyError) as caught:
            await gateway.list_agents()
        assert caught.value.code == grpc.StatusCode.UNAUTHENTICATED
    monkeypatch.setenv("PARLEY_SERVICE_SECRET", SECRET)
    async with GatewayClient(address, ca=secured.ca, patience=0) as gateway:
        assert (await gateway.list_agents()).agents
