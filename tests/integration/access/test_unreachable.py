"""Why no server answers, in words that say what to set."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.runtime.errors import ConfigurationError
from parley.runtime.server import ServerSettings, start_server
from parley.runtime.tls import ClientTls, ServerTls
from parley.runtime.unreachable import explain_unreachable
from tests.integration.access.test_tls import settings, tell
from tests.integration.runtime.wire import make_service
from tests.support.certificates import Authority
from tests.support.ports import free_ports


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def serve(tls: ServerTls | None) -> AsyncIterator[str]:
    """Yield the address of a server with or without TLS."""
    chosen = settings(tls) if tls else ServerSettings(grace_seconds=0)
    async with start_server([make_service(Tell=tell)], chosen) as running:
        yield f"127.0.0.1:{running.port}"


async def test_nothing_is_wrong_with_a_server_that_lets_the_client_in(authority: Authority) -> None:
    async with serve(None) as plain, serve(ServerTls(*authority.sign("a"))) as private:
        assert await explain_unreachable(plain, None) == ""
        assert await explain_unreachable(f"dns:///{private}", ClientTls(authority.file)) == ""
    mutual = ServerTls(*authority.sign("a"), client_ca=authority.file)
    async with serve(mutual) as address:
        tls = ClientTls(authority.file, *authority.sign("b"))
        assert await explain_unreachable(address, tls) == ""


async def test_an_address_where_nothing_listens_or_that_is_none_is_said() -> None:
    assert await explain_unreachable(f"127.0.0.1:{next(free_ports())}", None) == "connection refused"
    assert await explain_unreachable("parley.invalid:7401", None) == "no such host"
    assert await explain_unreachable("unix:/run/parley", None) == ""


@pytest.mark.parametrize("host", ["memory..svc", ".", "a" * 64, "é" * 64], ids=["empty", "dot", "long", "é"])
async def test_a_name_that_no_host_can_have_is_no_such_host(authority: Authority, host: str) -> None:
    assert await explain_unreachable(f"{host}:7405", None) == "no such host"
    assert await explain_unreachable(f"{host}:7405", ClientTls(authority.file)) == "no such host"


async def test_a_name_for_the_certificate_that_no_host_can_have_is_said(authority: Authority) -> None:
    async with serve(ServerTls(*authority.sign("a"))) as address:
        assert await explain_unreachable(address, ClientTls(authority.file), "memory..svc")


async def test_a_client_without_an_authority_is_told_that_the_server_speaks_tls(authority: Authority) -> None:
    async with serve(ServerTls(*authority.sign("a"))) as address:
        assert "it speaks TLS: set PARLEY_CA" in await explain_unreachable(address, None)


async def test_a_client_with_an_authority_is_told_that_the_server_speaks_none(authority: Authority) -> None:
    async with serve(None) as address:
        assert "it speaks no TLS, but PARLEY_CA is set" in await explain_unreachable(
            address, ClientTls(authority.file)
        )


async def test_a_certificate_of_another_authority_or_for_another_name_is_said(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with serve(ServerTls(*authority.sign("a"))) as address:
        said = await explain_unreachable(address, ClientTls(stranger.file))
        assert f"is not signed by the authority in PARLEY_CA ({stranger.file})" in said
        said = await explain_unreachable(address, ClientTls(authority.file), "parley-gateway")
        assert said.startswith("its certificate is not for parley-gateway;")


async def test_a_server_that_wants_a_certificate_of_its_callers_is_said(authority: Authority) -> None:
    async with serve(ServerTls(*authority.sign("a"), client_ca=authority.file)) as address:
        said = await explain_unreachable(address, ClientTls(authority.file))
        assert "set PARLEY_TLS_CERTIFICATE and PARLEY_TLS_KEY" in said


async def test_a_server_of_http_alone_is_said(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("edge"))

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        said = await explain_unreachable(address, ClientTls(authority.file))
    assert said == "it speaks TLS, but no gRPC: it may be the port of HTTP"


@pytest.mark.parametrize("name", ["PARLEY_CA", "PARLEY_TLS_CERTIFICATE", "PARLEY_TLS_KEY"])
def test_of_several_files_the_setting_of_the_wrong_one_alone_is_named(
    authority: Authority, tmp_path: Path, name: str
) -> None:
    certificate, key = authority.sign("a")
    files = {"PARLEY_CA": authority.file, "PARLEY_TLS_CERTIFICATE": certificate, "PARLEY_TLS_KEY": key}
    files[name] = tmp_path / "missing.pem"
    with pytest.raises(ConfigurationError, match=rf"^{name}: .*missing\.pem cannot be read"):
        ClientTls(*files.values())
    files[name].write_text("no PEM")
    with pytest.raises(ConfigurationError, match=rf"^{name}: .*missing\.pem is no PEM file"):
        ClientTls(*files.values())
