"""TLS of servers and clients; certificates are read again when they change.

gRPC supports only TLS 1.2 and newer; `tests/integration/runtime/test_tls.py` checks it.
"""

import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from parley.runtime.watched_files import WatchedFiles

SYSTEM_AUTHORITIES: Final = "system"
"""Instead of a file: the authorities that gRPC trusts by default."""
_CERTIFICATE: Final = "PARLEY_TLS_CERTIFICATE"
_KEY: Final = "PARLEY_TLS_KEY"
_CLIENT_CA: Final = "PARLEY_TLS_CLIENT_CA"
_CA: Final = "PARLEY_CA"


class ServerTls:
    """A server's certificate, and the authority of its clients' certificates."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        """Use the chain in `certificate`. With `client_ca`, clients must have a certificate that it signed.

        Raise ConfigurationError if a file cannot be read or is not PEM.
        """
        files = {_CERTIFICATE: certificate, _KEY: key} | ({_CLIENT_CA: client_ca} if client_ca else {})
        self._files = WatchedFiles(files, _pem_check(files))
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
        pair = {_CERTIFICATE: certificate, _KEY: key} if certificate and key else {}
        files = ({_CA: ca} if ca else {}) | pair
        self._ca, self._pair = ca, tuple(pair.values())
        self._files = WatchedFiles(files, _pem_check(files))

    def contents(self) -> tuple[bytes, ...]:
        """Return the files' contents; a channel is opened again when they change."""
        return self._files.contents()

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of a channel, from the files as they are now."""
        contents = list(self.contents())
        ca = contents.pop(0) if self._ca else None
        certificate, key = contents if self._pair else (None, None)
        return grpc.ssl_channel_credentials(ca, key, certificate)

    @property
    def authority(self) -> str:
        """Whom it trusts, as a person set it: a file, or `system`."""
        return str(self._ca or SYSTEM_AUTHORITIES)

    def ssl_context(self) -> ssl.SSLContext:
        """Return a context for a connection that is not gRPC's, from the files as they are now. Raise OSError."""
        context = ssl.create_default_context(cafile=self._ca)
        if self._pair:
            certificate, key = self._pair
            context.load_cert_chain(certificate, key, lambda: "")
        return context


def _pem_check(files: Mapping[str, Path]) -> Callable[[tuple[bytes, ...]], None]:
    def check(contents: tuple[bytes, ...]) -> None:
        for (setting, path), content in zip(files.items(), contents, strict=True):
            if b"-----BEGIN " not in content:
                raise ValueError(f"{setting}: {path} is no PEM file, which begins with -----BEGIN")
        if _CERTIFICATE not in files:
            return
        certificate, key = files[_CERTIFICATE], files[_KEY]
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
        except ssl.SSLError:
            raise ValueError(
                f"{_CERTIFICATE}, {_KEY}: {certificate} and {key} do not match, or are damaged"
            ) from None

    return check
