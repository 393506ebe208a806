"""TLS of servers and clients; certificates are read again when they change.

gRPC supports only TLS 1.2 and newer; `tests/integration/runtime/test_tls.py` checks it.
"""

import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from parley.runtime.watched_files import WatchedFiles

SYSTEM_AUTHORITIES: Final = "system"
"""Instead of a file: the authorities that gRPC trusts by default."""


class ServerTls:
    """A server's certificate, and the authority of its clients' certificates."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        """Use the chain in `certificate`. With `client_ca`, clients must have a certificate that it signed.

        Raise ConfigurationError if a file cannot be read or is not PEM.
        """
        paths = (certificate, key, *([client_ca] if client_ca else []))
        self._files = WatchedFiles(
            "PARLEY_TLS_CERTIFICATE, PARLEY_TLS_KEY, PARLEY_TLS_CLIENT_CA",
            *paths,
            check=_pem_check(certificate, key),
        )
        self._certificate, self._key, self._client_ca = certificate, key, client_ca
        self._last_contents: tuple[bytes, ...] = ()

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials of a port; a connection after a change gets the new certificate."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            self._new_configuration,  # type: ignore[arg-type]  # None: no other one
            self._client_ca is not None,
        )

    def ssl_context(self) -> ssl.SSLContext:
        """Return a context for a server that is not gRPC's; a connection after a change gets the new certificate."""
        first = newest = self._create_context()
        seen = self._files.contents()

        def use_newest(connection: ssl.SSLObject, _name: str, _first: ssl.SSLContext) -> None:
            nonlocal newest, seen
            contents = self._files.contents()
            if contents != seen:
                with suppress(OSError):  # replaced once more meanwhile: the next connection looks again
                    newest, seen = self._create_context(), contents
            connection.context = newest

        first.sni_callback = use_newest
        return first

    def _create_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key, lambda: "")
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _new_configuration(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the configuration if it changed, else None; gRPC asks at every handshake, in a thread of its own."""
        return None if self._files.contents() == self._last_contents else self._configuration()

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        self._last_contents = self._files.contents()
        certificate, key, *client_ca = self._last_contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], *client_ca)


class ClientTls:
    """The authorities that a client trusts, and its own certificate if a server asks for one."""

    def __init__(self, ca: Path | None, certificate: Path | None = None, key: Path | None = None) -> None:
        """Trust the authority in `ca`; None: gRPC's own list of authorities.

        Raise ConfigurationError if a file cannot be read or is not PEM.
        """
        paths = [*([ca] if ca else []), *([certificate, key] if certificate and key else [])]
        self._has_ca, self._has_certificate = ca is not None, len(paths) > 1
        self._files = WatchedFiles(
            "PARLEY_CA, PARLEY_TLS_CERTIFICATE, PARLEY_TLS_KEY", *paths, check=_pem_check(certificate, key)
        )

    def contents(self) -> tuple[bytes, ...]:
        """Return the files' contents; a channel is opened again when they change."""
        return self._files.contents()

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of a channel, from the files as they are now."""
        contents = list(self.contents())
        ca = contents.pop(0) if self._has_ca else None
        certificate, key = contents if self._has_certificate else (None, None)
        return grpc.ssl_channel_credentials(ca, key, certificate)


def _pem_check(certificate: Path | None, key: Path | None) -> Callable[[tuple[bytes, ...]], None]:
    def check(contents: tuple[bytes, ...]) -> None:
        if not all(b"-----BEGIN " in each for each in contents):
            raise ValueError("each must be a PEM file, which begins with -----BEGIN")
        if certificate is None or key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
        except ssl.SSLError:
            raise ValueError(f"{certificate} and {key} do not match, or are damaged") from None

    return check
