"""The error of a debate that failed, and the likely cause if an endpoint did not answer."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from parley.cli.errors import GENERAL, PROVIDER_FAILED, CommandError
from parley.cli.terminal.words import debating_agents, work_phase_text
from parley.cli.translate_errors import is_provider_failure
from parley.client import Debate
from parley.config.default import DEFAULT
from parley.config.file import ConfigFile, Provider
from parley.v1.debate_pb2 import DebateFailure

_AUTH = "PROVIDER_AUTH"


def debate_failure(
    state: Debate, found: ConfigFile | None, default_routes: Sequence[str], log: Path | None, *, own: bool
) -> CommandError:
    """Return the error of a failed debate: which agents failed in which phase, why, and what may help.

    `own` says that the system runs in this process, so that its settings are known here.
    """
    failure = state.failure
    agents = _failed_agents(state)
    where = " in ".join(part for part in (", ".join(agents), failure.phase) if part)
    message = f"{failure.reason}: {failure.message}"
    if where:
        message = f"{where}: {message}"
    if failure.reason == "INTERNAL" and log is not None:
        message = f"{message} ({log})"
    if own:
        message += explain_provider_failure((found or DEFAULT).providers, failure.message)
    if failure.reason == _AUTH:
        variables = _key_variables(state, agents, found, default_routes)
        message += f"; check {' and '.join(variables)}" if variables else ""
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


def _key_variables(
    state: Debate, agents: Sequence[str], found: ConfigFile | None, default_routes: Sequence[str]
) -> list[str]:
    """Return the environment variables with the keys of these agents' providers."""
    known = found or DEFAULT
    providers = {each.name: each for each in known.providers}
    of_routes = {each.name: each.provider for each in known.routes}
    described = [*debating_agents(state), state.spec.judge.agent]
    routes = [
        route for agent in described if agent.id in agents for route in (agent.routes or default_routes)
    ]
    names = (of_routes.get(route) or route.partition("/")[0] for route in routes)
    used = [providers[name].api_key_env for name in names if name in providers]
    return list(dict.fromkeys(variable for variable in used if variable is not None))


def _is_provider_failure(state: Debate, failure: DebateFailure) -> bool:
    """Return whether providers caused the failure: by its reason, or by the reason of every step it names."""
    if is_provider_failure(failure.reason):
        return True
    reasons = [each.reason for each in state.failures if each.key in failure.steps]
    return bool(reasons) and all(is_provider_failure(reason) for reason in reasons)


_SPEAKS_HTTP: Final = re.compile(r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|wrong version number")
_SPEAKS_HTTPS: Final = re.compile(r"not proper HTTP|plain HTTP request was sent|HTTP request to an HTTPS")
_CERTIFICATE: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed")
_NO_LISTENER: Final = re.compile(r"cannot connect to .*connection refused")
_NO_HOST: Final = re.compile(
    r"Name or service not known|nodename nor servname|No address associated|name resolution"
)
_NO_MODEL: Final = re.compile(
    r"\bmodels?\b.{0,200}\b(not found|does not exist|not exist|not available)|(unknown|invalid|no such) model",
    re.IGNORECASE,
)
_NO_API: Final = "no OpenAI-compatible API"
_OTHER_API: Final = re.compile(r"\b(404|405)\b|not JSON")
_SECRET: Final = re.compile(r"(?<=//)[^/@]*@|\?.*")
"""The parts of a URL that may contain a key: user name, password and query."""
_VERSION: Final = re.compile(r"/v\d|/openai|/api")


def explain_provider_failure(providers: Sequence[Provider], message: str) -> str:
    """Return `; asked http://localhost:11434: …` for the provider that the message names; empty if no address was set.

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
    if _NO_MODEL.search(message):
        return "it has no model of this name; PARLEY_MODEL or --model names one that it has"
    if not _OTHER_API.search(message):
        return ""
    if not _VERSION.search(address.path):
        return f"most base URLs end in /v1, try {bare}/v1"
    if not has_model:
        return "it may have no list of models; name one with PARLEY_MODEL"
    return "" if _NO_API in message else f"{_NO_API} answers under this address"


def _with_scheme(url: str, scheme: str) -> str:
    return f"{scheme}://{url.partition('://')[2]}"
