"""Why an endpoint probably did not answer, from its address and what came of it."""

import os
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from parley.config import Provider

__all__ = ["explain_provider_failure"]

_SPEAKS_HTTP: Final = re.compile(r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|wrong version number")
_SPEAKS_HTTPS: Final = re.compile(r"not proper HTTP|plain HTTP request was sent|HTTP request to an HTTPS")
_CERTIFICATE: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed")
_NO_LISTENER: Final = re.compile(r"cannot connect to .*(Connect call failed|[Cc]onnection refused)")
_NO_HOST: Final = re.compile(
    r"Name or service not known|nodename nor servname|No address associated|name resolution"
)
_OTHER_API: Final = re.compile(r"\b(404|405)\b|not JSON")
_SECRET: Final = re.compile(r"(?<=//)[^/@]*@|\?.*")
"""What may hold a key: a user's name and password, and the query."""
_VERSION: Final = re.compile(r"/v\d|/openai|/api")


def explain_provider_failure(providers: Sequence[Provider], message: str) -> str:
    """Return `; asked http://localhost:11434: …` for the provider that the message names; empty where no address was set.

    The address is the file's, or OPENAI_BASE_URL. The message is that of a failure.
    """
    for provider in providers:
        url = provider.base_url or (os.environ.get("OPENAI_BASE_URL") if provider.kind == "openai" else None)
        named = re.search(rf"(^|[\s;(]){re.escape(provider.name)}(?P<model>/\S*)?(:| failed)", message)
        if url and named:
            shown = _SECRET.sub("", url)
            cause = _likely_cause(shown, message, has_model=named["model"] is not None)
            return f"; asked {shown}{f': {cause}' if cause else ''}"
    return ""


def _likely_cause(url: str, message: str, *, has_model: bool) -> str:  # noqa: PLR0911 (a return a cause)
    address, bare = urlsplit(url), url.rstrip("/")
    if address.scheme == "https" and _SPEAKS_HTTP.search(message):
        return f"what listens there speaks http, try {_with_scheme(bare, 'http')}"
    if address.scheme == "http" and _SPEAKS_HTTPS.search(message):
        return f"what listens there may speak https, try {_with_scheme(bare, 'https')}"
    if _CERTIFICATE.search(message):
        return "its certificate is not trusted here; SSL_CERT_FILE names the authorities that are"
    if _NO_HOST.search(message):
        return "there is no such host"
    if _NO_LISTENER.search(message):
        return "nothing listens there; is the server running, and the port its own?"
    if not _OTHER_API.search(message):
        return ""
    if not _VERSION.search(address.path):
        return f"most base URLs end in /v1, try {bare}/v1"
    if not has_model:
        return "it may have no list of models; name one with PARLEY_MODEL"
    return "no OpenAI-compatible API answers under this address"


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"
