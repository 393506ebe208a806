"""The credentials and the TLS settings of a client, from its arguments or the environment."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from parley.runtime.channel import ChannelSettings
from parley.runtime.identity.guard import AUTHORIZATION
from parley.runtime.identity.local_token import find_token
from parley.runtime.identity.service_tokens import ServiceSigner
from parley.runtime.loopback import loopback_port
from parley.runtime.tls import SYSTEM_AUTHORITIES, ClientTls

_SERVICE: Final = "operator"
_Headers = Callable[[], Sequence[tuple[str, str]]]


def channel_settings(
    target: str, tenant: str, token: str | None = None, ca: str | None = None
) -> ChannelSettings:
    """Return the settings of the channel to `target`.

    `token` is a key or token. Without one, this user's own system on this machine gets the token of its file, and others
    PARLEY_TOKEN, or else a token that PARLEY_SERVICE_SECRET signs for `tenant`, as for services. `ca` is the file of the authority that signed
    the server's certificate, or `system`, by default PARLEY_CA; without one, and for this user's own system on this machine,
    the server is called without TLS. PARLEY_TLS_CERTIFICATE and PARLEY_TLS_KEY name a certificate for servers that require one.

    Raises:
        ConfigurationError: a named file cannot be used.
    """
    return ChannelSettings(
        tls=_tls(_default_authority(target) if ca is None else ca),
        headers=_headers(target, tenant, token),
        allow_plaintext=os.environ.get("PARLEY_TLS") == "off",
    )


def _headers(target: str, tenant: str, token: str | None) -> _Headers | None:
    headers = _environment_headers(tenant) if token is None else _bearer_headers(token)
    port = loopback_port(target)
    if token is not None or port is None:
        return headers

    def read_with_each_call() -> Sequence[
        tuple[str, str]
    ]:  # read for each call, since another process may listen there by now
        return _bearer_headers(find_token(port), headers)()

    return read_with_each_call


def _default_authority(target: str) -> str:
    """Return PARLEY_CA; empty for this user's own system on this machine, which uses no TLS."""
    port = loopback_port(target)
    return "" if port is not None and find_token(port) else os.environ.get("PARLEY_CA", "")


def _environment_headers(tenant: str) -> _Headers | None:
    """Return the credentials of the environment; None if it has none."""
    token = os.environ.get("PARLEY_TOKEN", "").strip()
    if token:
        return _bearer_headers(token)
    secret = os.environ.get("PARLEY_SERVICE_SECRET", "").encode()
    return partial(ServiceSigner(_SERVICE, lambda: (secret,)).headers_for, tenant) if secret else None


def _bearer_headers(token: str, otherwise: _Headers | None = None) -> _Headers:
    if not token:
        return otherwise or tuple
    shown = ((AUTHORIZATION, f"Bearer {token}"),)
    return lambda: shown


def _tls(ca: str) -> ClientTls | None:
    if not ca:
        return None
    certificate, key = os.environ.get("PARLEY_TLS_CERTIFICATE"), os.environ.get("PARLEY_TLS_KEY")
    authority = None if ca == SYSTEM_AUTHORITIES else Path(ca)
    return ClientTls(authority, Path(certificate) if certificate else None, Path(key) if key else None)
