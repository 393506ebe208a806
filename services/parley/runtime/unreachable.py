"""Find out in plain words why no gRPC server answers at an address. gRPC itself says it in words of its libraries, or not at all."""

import asyncio
import socket
import ssl
from typing import Final

from parley.runtime.loopback import strip_scheme
from parley.runtime.tls import ClientTls

_CONNECT_SECONDS: Final = 5.0
_FIRST_BYTE_SECONDS: Final = 1.0
"""A gRPC server speaks first, as soon as it has let a caller in."""
_CLOSED: Final = (
    "it closes the connection; if it wants a certificate of its callers, set PARLEY_TLS_CERTIFICATE and PARLEY_TLS_KEY to one that "
    "its authority signed"
)


async def explain_unreachable(target: str, tls: ClientTls | None, tls_name: str = "") -> str:
    """Return why a client with these settings gets no connection to `HOST:PORT`, and what to set.

    Empty: the address was reached, or it is none of one host and port. Takes some seconds at most.
    """
    address = _split(target)
    if address is None:
        return ""
    if reason := await explain_unconnected(target):
        return reason
    try:
        return await (_explain_tls(*address, tls, tls_name) if tls else _explain_plain(*address))
    except (OSError, ValueError) as error:
        return _describe(error)


async def explain_unconnected(target: str) -> str:
    """Return why nothing listens at `HOST:PORT`, in two or three words; empty as above."""
    address = _split(target)
    if address is None:
        return ""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(*address)
    except (OSError, ValueError) as error:
        return _describe(error)
    writer.close()
    return ""


def _split(target: str) -> tuple[str, int] | None:
    host, _, port = strip_scheme(target).rpartition(":")
    if not port.isdecimal() or (":" in host and not host.startswith("[")):
        return None
    return host.strip("[]"), int(port)


async def _explain_plain(host: str, port: int) -> str:
    """Look whether the server speaks TLS, which a client without an authority does not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        _, writer = await _open_tls(host, port, context, host)
    except OSError:
        return ""
    writer.close()
    return (
        "it speaks TLS: set PARLEY_CA to the file of the authority that signed its certificate, or to system"
    )


async def _explain_tls(host: str, port: int, tls: ClientTls, tls_name: str) -> str:
    name = tls_name or host
    context = tls.ssl_context()
    context.set_alpn_protocols(["h2"])
    try:
        reader, writer = await _open_tls(host, port, context, name)
    except ssl.SSLError as error:
        return _describe_handshake(error, name, tls.authority)
    try:
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            return "it speaks TLS, but no gRPC: it may be the port of HTTP"
        return "" if await _keeps_open(reader) else _CLOSED
    finally:
        writer.transport.abort()


async def _keeps_open(reader: asyncio.StreamReader) -> bool:
    """Return whether the server lets the caller in: it refuses a certificate only after the handshake."""
    try:
        async with asyncio.timeout(_FIRST_BYTE_SECONDS):
            return bool(await reader.read(1))
    except TimeoutError:
        return True
    except (ssl.SSLError, ConnectionError):
        return False


async def _open_tls(
    host: str, port: int, context: ssl.SSLContext, name: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(_CONNECT_SECONDS):
        return await asyncio.open_connection(host, port, ssl=context, server_hostname=name)


def _describe_handshake(error: ssl.SSLError, name: str, authority: str) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        if error.reason == "WRONG_VERSION_NUMBER":
            return "it speaks no TLS, but PARLEY_CA is set: unset it, or give the server a certificate"
        return f"TLS fails: {error.reason or error}"
    said = error.verify_message
    if "mismatch" in said or "not valid for" in said:
        return f"its certificate is not for {name}; call it by a name of its certificate, or sign one for this name"
    if "expired" in said or "not yet valid" in said:
        return f"its certificate cannot be used: {said}"
    return f"its certificate is not signed by the authority in PARLEY_CA ({authority}): {said}"


def _describe(error: OSError | ValueError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer in {_CONNECT_SECONDS:.0f} s"
    # UnicodeError is for a name that no host can have, as a..b.
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "no such host"
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return "connection refused" if "Connect call failed" in text else text.lower()
