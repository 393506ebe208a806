"""The error of a debate that failed, and the likely cause if an endpoint did not answer."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from parley.cli.errors import GENERAL, PROVIDER_FAILED, CommandError
from parley.cli.terminal.words import work_phase_text
from parley.cli.translate_errors import is_provider_failure
from parley.client import Debate
from parley.config.default import DEFAULT
from parley.config.file import ConfigFile, Provider
from parley.v1.debate_pb2 import DebateFailure

_AUTH = "PROVIDER_AUTH"


def debate_failure(state: Debate, found: ConfigFile | None, log: Path | None, *, own: bool) -> CommandError:
    """Return the error of a failed debate: which agents failed in which phase, why, and what may help.

    `own` says that the system runs in this process, so that its settings are known here.
    """
    failure, known = state.failure, found or DEFAULT
    where = " in ".join(part for part in (", ".join(_failed_agents(state)), failure.phase) if part)
    message = f"{failure.reason}: {failure.message}"
    if where:
        message = f"{where}: {message}"
    if failure.reason == "INTERNAL" and log is not None:
        message = f"{message} ({log})"
    hints = explain_provider_failure(known.providers, failure.message) if own else ""
    if failure.reason == _AUTH:
        hints += _explain_refused_key(known, failure.message, own=own)
    if hints:
        message = f"{message.rstrip('.')}{hints}"
    return CommandError(message, PROVIDER_FAILED if _is_provider_failure(state, failure) else GENERAL)


def _failed_agents(state: Debate) -> tuple[str, ...]:
    """Return the agent whose failure ended the debate, and those that failed alike in the same phase."""
    failure = state.failure
    if not failure.agent_id:
        return ()
    alike = (
        each.work.agent_id
        for each in state.failures
        if (work_phase_text(each.work), each.reason, each.message)
        == (failure.phase, failure.reason, failure.message)
    )
    return tuple(dict.fromkeys((failure.agent_id, *alike)))


def _explain_refused_key(found: ConfigFile, message: str, *, own: bool) -> str:
    """Return `; the key is that of OPENAI_API_KEY: set the right one` for each provider whose route the message names."""
    providers = {each.name: each for each in found.providers}
    providers |= {each.name: providers[each.provider] for each in found.routes if each.provider in providers}
    named = [each for name, each in providers.items() if _find_named(name, message)]
    place = "" if own else " at the gateway"
    hints = []
    for each in named:
        if own and each.api_key_env and not os.environ.get(each.api_key_env):
            hints.append(f"; no key is set: export {each.api_key_env}=…")
        elif source := each.api_key_env or each.api_key_file:
            hints.append(f"; the key is that of {source}{place}: set the right one")
    return "".join(dict.fromkeys(hints))


def _find_named(name: str, message: str) -> re.Match[str] | None:
    """Return where a failure's message names this route, or a route of this provider."""
    return re.search(rf"(^|[\s;(]){re.escape(name)}(?P<model>/\S*)?(:| failed)", message)


def _is_provider_failure(state: Debate, failure: DebateFailure) -> bool:
    """Return whether providers caused the failure: by its reason, or by the reason of every step it names."""
    if is_provider_failure(failure.reason):
        return True
    reasons = [each.reason for each in state.failures if each.key in failure.steps]
    return bool(reasons) and all(is_provider_failure(reason) for reason in reasons)


_SPEAKS_HTTP: Final = re.compile(r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|wrong version number")
_SPEAKS_HTTPS: Final = re.compile(r"not proper HTTP|plain HTTP request was sent|HTTP request to an HTTPS")
_UNKNOWN_HOST: Final = re.compile(
    r"Name or service not known|nodename nor servname|No address associated|name resolution"
)
_CAUSES: Final = (
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"),
        "its certificate is not trusted here; SSL_CERT_FILE names the authorities that are",
    ),
    (_UNKNOWN_HOST, "there is no such host"),
    (
        re.compile(r"cannot connect to .*connection refused"),
        "nothing listens there; is the server running, and the port its own?",
    ),
    (
        re.compile(r"was silent for|no answer within"),
        "it takes requests and does not answer them; does it work, or is its model still loading?",
    ),
    (
        re.compile(
            r"\bmodels?\b.{0,200}\b(not found|does not exist|not exist|not available)|(unknown|invalid|no such) model",
            re.IGNORECASE,
        ),
        "it has no model of this name; PARLEY_MODEL or --model names one that it has",
    ),
)
_NO_API: Final = "no OpenAI-compatible API"
_OTHER_API: Final = re.compile(r"\b(404|405)\b|no(t)? JSON")
_SECRET: Final = re.compile(r"(?<=//)[^/@]*@|\?.*")
"""The parts of a URL that may contain a key: user name, password and query."""
_VERSION: Final = re.compile(r"/v\d|/openai|/api")


def explain_provider_failure(providers: Sequence[Provider], message: str) -> str:
    """Return `; asked http://localhost:11434: …` for the provider that the message names; empty if no address was set.

    The address is the file's, or OPENAI_BASE_URL. The message is that of a failure.
    """
    for provider in providers:
        url = provider.base_url or (os.environ.get("OPENAI_BASE_URL") if provider.kind == "openai" else None)
        named = _find_named(provider.name, message)
        if url and named:
            shown = _SECRET.sub("", url)
            cause = _likely_cause(shown, message, has_model=named["model"] is not None)
            return f"; asked {shown}{f': {cause}' if cause else ''}"
        if named and _UNKNOWN_HOST.search(message):
            return "; is this machine connected to the internet? If only a proxy is, HTTPS_PROXY names it"
    return ""


def _likely_cause(url: str, message: str, *, has_model: bool) -> str:  # noqa: PLR0911 (a return a cause)
    address, bare = urlsplit(url), url.rstrip("/")
    if address.scheme == "https" and _SPEAKS_HTTP.search(message):
        return f"what listens there speaks http, try {_with_scheme(bare, 'http')}"
    if address.scheme == "http" and _SPEAKS_HTTPS.search(message):
        return f"what listens there may speak https, try {_with_scheme(bare, 'https')}"
    for pattern, cause in _CAUSES:
        if pattern.search(message):
            return cause
    if not _OTHER_API.search(message):
        return ""
    if not _VERSION.search(address.path):
        return f"most base URLs end in /v1, try {bare}/v1"
    if not has_model and "web page" not in message:
        return "it may have no list of models; name one with PARLEY_MODEL"
    return "" if _NO_API in message else f"{_NO_API} answers under this address"


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"
