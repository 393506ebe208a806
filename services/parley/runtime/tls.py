"""TLS of servers and clients, with certificates that are read again when they change.

gRPC speaks TLS 1.2 or newer alone; `tests/integration/runtime/test_tls.py` holds it to that.
"""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import grpc

from parley.runtime.watched_files import WatchedFiles

__all__ = ["SYSTEM_AUTHORITIES", "ClientTls", "ServerTls"]

SYSTEM_AUTHORITIES: Final = "system"
"""In place of a file: the authorities that gRPC itself trusts."""


class ServerTls:
    """What a server shows of itself, and whose certificates it wants of clients."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        """Show the chain in `certificate`. With `client_ca`, clients must have a certificate that it signed.

        Raises:
            ConfigurationError: a file cannot be read or is no PEM.
        """
        paths = (certificate, key, *([client_ca] if client_ca else []))
        self._files = WatchedFiles(
            "PARLEY_TLS_CERTIFICATE, PARLEY_TLS_KEY, PARLEY_TLS_CLIENT_CA",
            *paths,
            check=_pem_check(certificate, key),
        )
        self._requires_client_certificate = client_ca is not None
        self._last_contents: tuple[bytes, ...] = ()

    def credentials(self) -> grpc.ServerCredentials:
        """Return what a port takes; a connection that comes after a change is shown the new certificate."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(),
            self._new_configuration,  # type: ignore[arg-type]  # None: no other one
            self._requires_client_certificate,
        )

    def _new_configuration(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the configuration where it is another one; gRPC asks at every handshake, in a thread of its own."""
        return None if self._files.contents() == self._last_contents else self._configuration()

    def _configuration(self) -> grpc.ServerCertificateConfiguration:
        self._last_contents = self._files.contents()
        certificate, key, *client_ca = self._last_contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], *client_ca)


class ClientTls:
    """Whom a client trusts, and what it shows of itself where a server asks."""

    def __init__(self, ca: Path | None, certificate: Path | None = None, key: Path | None = None) -> None:
        """Trust what `ca` signed; None: what gRPC's own list of authorities did.

        Raises:
            ConfigurationError: a file cannot be read or is no PEM.
        """
        paths = [*([ca] if ca else []), *([certificate, key] if certificate and key else [])]
        self._has_ca, self._has_certificate = ca is not None, len(paths) > 1
        self._files = WatchedFiles(
            "PARLEY_CA, PARLEY_TLS_CERTIFICATE, PARLEY_TLS_KEY", *paths, check=_pem_check(certificate, key)
        )

    def contents(self) -> tuple[bytes, ...]:
        """Return what the files hold now; a channel is made again where it is something else."""
        return self._files.contents()

    def credentials(self) -> grpc.ChannelCredentials:
        """Return what a channel takes, as the files are now."""
        contents = list(self.contents())
        ca = contents.pop(0) if self._has_ca else None
        certificate, key = contents if self._has_certificate else (None, None)
        return grpc.ssl_channel_credentials(ca, key, certificate)


def _pem_check(certificate: Path | None, key: Path | None) -> Callable[[tuple[bytes, ...]], None]:
    def check(contents: tuple[bytes, ...]) -> None:
        if not all(b"-----BEGIN " in each for each in contents):
            raise ValueError("each must be a file in PEM, which begins with -----BEGIN")
        if certificate is None or key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
        except ssl.SSLError:
            raise ValueError(f"{certificate} and {key} do not belong together, or are damaged") from None

    return check
