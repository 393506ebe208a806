"""TLS between a client and a service, with certificates that are replaced while both run."""

import asyncio
import socket
import ssl
from pathlib import Path

import grpc
import pytest
from cryptography import x509

from parley.client import ParleyClient, ParleyError
from parley.runtime import watched_files
from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.certificates import CertificateRule, Certificates
from parley.runtime.identity.guard import Guard
from parley.runtime.identity.identity import current_identity
from parley.runtime.server import RunningServer, ServerSettings, start_server
from parley.runtime.tls import ClientTls, ServerTls
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from tests.integration.runtime.wire import make_service, method
from tests.support.certificates import Authority


@pytest.fixture(autouse=True)
def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_files, "_CHECK_SECONDS", 0.0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def tell(_request: bytes, _context: object) -> bytes:
    return f"{current_identity().tenant} {current_identity().subject}".encode()


def settings(tls: ServerTls, *rules: CertificateRule) -> ServerSettings:
    guard = Guard(Certificates(rules)) if rules else Guard(open_to_all=True)
    return ServerSettings(grace_seconds=0, tls=tls, guard=guard)


async def ask_caller(running: RunningServer, tls: ClientTls | None) -> str:
    async with channel(running.address, ChannelSettings(tls=tls)) as connected:
        answer: bytes = await method(connected, "Tell")(b"", timeout=10)
    return answer.decode()


def read_certificate(running: RunningServer, context: ssl.SSLContext) -> tuple[str, str]:
    """The common name of the certificate that a server shows, and the version of TLS."""
    with (
        socket.create_connection(("127.0.0.1", running.port)) as raw,
        context.wrap_socket(raw) as wrapped,
    ):
        shown = x509.load_der_x509_certificate(wrapped.getpeercert(binary_form=True) or b"")
        return shown.subject.rfc4514_string(), wrapped.version() or ""


def context_of(maximum: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    context.maximum_version = maximum
    return context


async def test_a_client_trusts_whom_its_authority_signed_and_nobody_else(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with start_server([make_service(Tell=tell)], settings(ServerTls(*authority.sign("a")))) as running:
        assert await ask_caller(running, ClientTls(authority.file)) == "default "
        for other in (ClientTls(stranger.file), None):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask_caller(running, other)
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


async def test_a_server_that_is_called_by_its_address_must_have_the_name_that_is_expected(
    authority: Authority,
) -> None:
    async with start_server([make_service(Tell=tell)], settings(ServerTls(*authority.sign("a")))) as running:
        for name, trusted in (("localhost", True), ("parley-orchestrator", False)):
            tls = ChannelSettings(tls=ClientTls(authority.file), tls_name=name)
            async with channel(running.address, tls) as connected:
                call = method(connected, "Tell")(b"", timeout=10)
                if trusted:
                    assert await call == b"default "
                else:
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await call
                    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_a_server_speaks_no_tls_older_than_1_2(authority: Authority) -> None:
    async with start_server([make_service(Tell=tell)], settings(ServerTls(*authority.sign("a")))) as running:
        for maximum, version in ((ssl.TLSVersion.TLSv1_3, "TLSv1.3"), (ssl.TLSVersion.TLSv1_2, "TLSv1.2")):
            assert await asyncio.to_thread(read_certificate, running, context_of(maximum)) == (
                "CN=a",
                version,
            )
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(read_certificate, running, context_of(ssl.TLSVersion.TLSv1_1))


async def test_a_server_shows_a_certificate_that_took_the_place_of_another(authority: Authority) -> None:
    files = authority.sign("first", file_name="server")
    newest = context_of(ssl.TLSVersion.TLSv1_3)
    async with start_server([make_service(Tell=tell)], settings(ServerTls(*files))) as running:
        assert (await asyncio.to_thread(read_certificate, running, newest))[0] == "CN=first"
        authority.sign("second", file_name="server")
        assert (await asyncio.to_thread(read_certificate, running, newest))[0] == "CN=second"
        await asyncio.to_thread(files[0].write_text, "-----BEGIN half of it")
        assert (await asyncio.to_thread(read_certificate, running, newest))[0] == "CN=second"


async def test_a_client_shows_a_certificate_that_took_the_place_of_another(authority: Authority) -> None:
    server = ServerTls(*authority.sign("server"), client_ca=authority.file)
    files = authority.sign("first", file_name="client")
    tls = ClientTls(authority.file, *files)
    seen: list[str] = []

    async def look(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        names = context.auth_context()["x509_common_name"]
        seen.append(next(iter(names)).decode())
        return b""

    async with (
        start_server([make_service(Look=look)], settings(server)) as running,
        channel(running.address, ChannelSettings(tls=tls)) as connected,
    ):
        looking = method(connected, "Look")
        await looking(b"", timeout=10)
        authority.sign("second", file_name="client")
        await looking(b"", timeout=10)
    assert seen == ["first", "second"]


async def test_a_certificate_tells_the_tenant_and_without_one_nobody_is_spoken_to(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.runtime.identity.guard.needed_role", lambda _: ACCESS_ROLE_READ)
    server = ServerTls(*authority.sign("server"), client_ca=authority.file)
    rule = CertificateRule("uri:spiffe://acme/*", "acme", frozenset({ACCESS_ROLE_READ}))
    ours = ClientTls(authority.file, *authority.sign("ours", ["spiffe://acme/ci"]))
    others = ClientTls(authority.file, *authority.sign("others", ["spiffe://other/ci"]))
    async with start_server([make_service(Tell=tell)], settings(server, rule)) as running:
        assert await ask_caller(running, ours) == "acme spiffe://acme/ci"
        for tls, code in (
            (others, grpc.StatusCode.UNAUTHENTICATED),
            (ClientTls(authority.file), grpc.StatusCode.UNAVAILABLE),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask_caller(running, tls)
            assert caught.value.code() == code


@pytest.mark.parametrize(
    ("subject", "is_known"),
    [
        ("dns:*.umbrella.example", False),
        ("email:*.umbrella.example", True),
        ("cn:someone", False),
        ("uri:spiffe://a/b", True),
        ("dns:localhost", True),
    ],
)
async def test_a_rule_matches_names_of_its_own_kind_in_a_real_certificate(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, subject: str, is_known: bool
) -> None:
    monkeypatch.setattr("parley.runtime.identity.guard.needed_role", lambda _: ACCESS_ROLE_READ)
    server = ServerTls(*authority.sign("server"), client_ca=authority.file)
    files = authority.sign("someone", ["spiffe://a/b"], emails=["a@b.umbrella.example"])
    rule = CertificateRule(subject, "umbrella", frozenset({ACCESS_ROLE_READ}))
    async with start_server([make_service(Tell=tell)], settings(server, rule)) as running:
        if is_known:
            assert (await ask_caller(running, ClientTls(authority.file, *files))).startswith("umbrella ")
            return
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask_caller(running, ClientTls(authority.file, *files))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_files_that_are_no_pair_or_not_there_stop_the_start(authority: Authority, tmp_path: Path) -> None:
    (one, _), (_, other) = authority.sign("one"), authority.sign("other")
    for certificate, key in ((one, other), (one, tmp_path / "none"), (tmp_path, other)):
        with pytest.raises(ConfigurationError, match=r"^PARLEY_TLS_"):
            ServerTls(certificate, key)


async def test_a_token_is_not_sent_to_another_machine_in_the_clear_unless_a_setting_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_CA"):
        async with ParleyClient("dns:///parley.example:7401", token="t"):
            pass
    monkeypatch.setenv("PARLEY_TLS", "off")
    async with ParleyClient("dns:///parley.example:7401", token="t"):
        pass


async def test_the_python_client_trusts_the_authority_that_the_environment_names(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_server([make_service(Tell=tell)], settings(ServerTls(*authority.sign("a")))) as running:
        monkeypatch.setenv("PARLEY_CA", str(authority.file))
        async with ParleyClient(f"localhost:{running.port}", patience=0) as parley:
            with pytest.raises(ParleyError) as caught:
                await parley.get("deb-1")
            assert caught.value.code == grpc.StatusCode.UNIMPLEMENTED, "it was reached"
