"""An edge as it is deployed: its certificate is renewed while it runs, and probes ask at a port of their own."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.runtime import watched_files
from parley.runtime.errors import ConfigurationError
from parley.runtime.server import CannotListenError
from tests.support.certificates import Authority
from tests.support.orchestration import Orchestrator
from tests.support.ports import free_ports


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_files, "_CHECK_SECONDS", 0.0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def run(orchestrator: Orchestrator, files: tuple[Path, Path], **given: Any) -> Any:
    certificate, key = files
    address = orchestrator.server.address
    return run_edge(
        EdgeSettings(
            port=0,
            orchestrator=address,
            grace_seconds=1,
            tls_certificate=certificate,
            tls_key=key,
            **given,
        )
    )


def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.file))


async def read_certificate(address: str, context: ssl.SSLContext, name: str | None = "localhost") -> str:
    """The common name of the certificate that an edge shows to a client that asks for a name, or for none."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=name or host)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert b"200" in (await reader.read()).partition(b"\r\n")[0]
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string()


async def test_a_certificate_that_took_the_place_of_another_is_shown_without_a_new_start(
    orchestrator: Orchestrator, authority: Authority
) -> None:
    files = authority.sign("first", file_name="edge")
    async with run(orchestrator, files) as address:
        assert await read_certificate(address, trust(authority)) == "CN=first"
        authority.sign("second", file_name="edge")
        assert await read_certificate(address, trust(authority)) == "CN=second"
        assert await read_certificate(address, trust(authority), name=None) == "CN=second"
        files[0].write_text("-----BEGIN half of it")
        assert await read_certificate(address, trust(authority)) == "CN=second"


async def test_a_connection_that_is_open_outlives_the_renewal(
    orchestrator: Orchestrator, authority: Authority
) -> None:
    async with (
        run(orchestrator, authority.sign("first", file_name="edge")) as address,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session,
    ):
        for _ in range(2):
            async with session.get(f"https://{address}/healthz", ssl=trust(authority)) as answer:
                assert answer.status == 200
            authority.sign("second", file_name="edge")


async def test_with_an_authority_of_clients_nobody_without_its_certificate_is_spoken_to(
    orchestrator: Orchestrator, authority: Authority
) -> None:
    async with run(orchestrator, authority.sign("edge"), tls_client_ca=authority.file) as address:
        bare, known = trust(authority), trust(authority)
        known.load_cert_chain(*authority.sign("known"))
        assert await read_certificate(address, known) == "CN=edge"
        with pytest.raises((OSError, AssertionError)):
            await read_certificate(address, bare)


async def test_an_edge_does_not_start_with_a_certificate_that_is_none(
    orchestrator: Orchestrator, authority: Authority
) -> None:
    certificate, key = authority.sign("edge")
    certificate.write_text("nothing")
    with pytest.raises(ConfigurationError, match="PEM"):
        async with run(orchestrator, (certificate, key)):
            pass


async def test_probes_ask_in_plaintext_at_a_port_of_their_own_by_whatever_name(
    orchestrator: Orchestrator, authority: Authority
) -> None:
    port = next(free_ports())
    async with (
        run(orchestrator, authority.sign("edge"), health_port=port),
        aiohttp.ClientSession(headers={"Host": "10.1.2.3"}) as session,
    ):
        for path, status in (("healthz", 200), ("readyz", 200), ("v1/debates/deb-1/events", 404)):
            async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                assert answer.status == status
        with pytest.raises(CannotListenError, match=f"PARLEY_HEALTH_PORT: cannot listen on 127.0.0.1:{port}"):
            async with run(orchestrator, authority.sign("another"), health_port=port):
                pass
        await orchestrator.server.drain()
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 503
        async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.status == 200
