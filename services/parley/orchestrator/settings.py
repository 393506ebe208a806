"""The orchestrator's settings, from `PARLEY_…` variables."""

import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from parley.orchestrator.allowance.limits import REQUEST_BYTES, TenantLimits
from parley.orchestrator.model.retention import Retention
from parley.orchestrator.outgoing.reach import Reach, parse_networks
from parley.orchestrator.outgoing.web_address import is_http_url
from parley.orchestrator.outgoing_settings import NO_HTTP_URL, OutgoingSettings
from parley.runtime.comma_lists import split_list
from parley.runtime.errors import ConfigurationError
from parley.runtime.loopback import is_loopback, join_address
from parley.storage.settings import StoreSettings

# imported on use: settings are read before the orchestrator is imported, and most read no page
if TYPE_CHECKING:
    from parley.orchestrator.api.receipts import ReceiptKeys
    from parley.orchestrator.engine.runner import RunnerSettings
    from parley.orchestrator.research.servers import ToolServer
    from parley.orchestrator.research.sources import WebSources

_MAX_FEEDS = 10
_MAX_SERVERS = 10
_ALGORITHM = "(RS256|RS384|RS512|PS256|PS384|PS512|ES256|ES384|ES512|EdDSA)"
"""Asymmetric algorithms only: with a shared secret every verifier could sign tokens."""


class ToolServerSetting(BaseModel):
    """An MCP server of PARLEY_RESEARCH_MCP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")
    command: str = Field(min_length=1, max_length=1000)
    tool: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")
    argument: str = Field(default="query", min_length=1, max_length=100)

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: str) -> str:
        try:
            parts = shlex.split(command)
        except ValueError:
            raise ValueError("has a quotation mark that is not closed") from None
        if not parts:
            raise ValueError("names no program")
        return command


class OrchestratorSettings(OutgoingSettings, StoreSettings):
    """The settings of the orchestrator."""

    internal: ClassVar[bool] = False
    service_name: ClassVar[str] = "orchestrator"

    port: int = Field(default=7401, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    gateway: str = Field(default="127.0.0.1:7402", description="Address of the gateway.")
    convergence: str = Field(default="127.0.0.1:7403", description="Address of convergence.")
    ratings: str = Field(default="127.0.0.1:7404", description="Address of ratings.")
    memory: str = Field(default="127.0.0.1:7405", description="Address of memory.")
    lease_seconds: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description="Seconds without a heartbeat after which another replica takes a debate over.",
    )
    poll_seconds: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="Seconds between two scans of the store for debates and interventions.",
    )
    max_debates: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Debates that one replica runs at a time; those that wait for a person do not count. An eighth more are run for "
        "tenants that have none running.",
    )
    max_document_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=0,
        le=2**40,
        description="Bytes of the context documents of all debates that one replica runs at a time, and of what research may find for them. Debates that find no room wait, and "
        "an eighth more is for tenants that have none running. 0: no limit.",
    )
    request_bytes: int = Field(
        default=REQUEST_BYTES,
        ge=1,
        le=2**40,
        description="Bytes of large requests for debates that one replica works on at a time, of which one tenant has half. Each takes "
        "some times its size meanwhile. What waits for 10 s is refused and may be tried again.",
    )
    follow_up_seconds: float = Field(
        default=600.0,
        ge=0,
        le=7 * 24 * 3600,
        description="Seconds after an answer within which it is sent to ratings and memory, else a warning is recorded; "
        "0: no limit.",
    )
    research_search: str = Field(
        default="",
        description="Base URL of a SearXNG that gives JSON, such as http://searxng:8080, which is asked each debate's question; its first "
        "results are read and shown to the agents as sources. Needs the extra `research`, as the next three do. Unset: nothing is searched.",
    )
    research_feeds: str = Field(
        default="",
        description="URL,… of feeds (RSS or Atom), at most 10, whose newest entries are shown to the agents of each debate as sources.",
    )
    research_pages: bool = Field(
        default=False,
        description="Whether callers may name pages that are read and shown to the agents as sources.",
    )
    research_mcp: tuple[ToolServerSetting, ...] = Field(
        default=(),
        max_length=_MAX_SERVERS,
        description='MCP servers that are started for each debate and asked its question: [{"name": "wiki", "command": "wiki-mcp --lang '
        'en", "tool": "search", "argument": "query"}], at most 10. What the tool answers is shown to the agents as a source.',
    )
    research_results: int = Field(
        default=5, ge=1, le=20, description="Results of a search that are read for a debate."
    )
    research_seconds: float = Field(
        default=20.0,
        gt=0,
        le=120,
        description="Seconds that each source may take; without it the debate goes on.",
    )
    research_networks: str = Field(
        default="",
        description="Networks, as 10.1.0.0/16,…, whose pages and feeds may be read although they are not public.",
    )
    research_ports: str = Field(
        default="80,443",
        pattern=r"^[0-9]{1,5}(,[0-9]{1,5})*$",
        description="Ports at which pages and feeds may be read.",
    )
    adopt: bool = Field(
        default=True, description="Whether debates that another process left are continued without a request."
    )
    heartbeat_seconds: float = Field(
        default=15.0,
        gt=0,
        le=15,
        description="Seconds without news after which a watcher gets a heartbeat.",
    )

    reader_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds that a watcher may take to accept one message before it is cut off.",
    )
    advertise: str = Field(
        default="",
        pattern=r"^\S*$",
        description="HOST:PORT, or HOST with the port on which it listens, by which other replicas reach this one; default: where it listens.",
    )
    advertise_name: str = Field(
        default="",
        description="Name that the certificates of other replicas have, if PARLEY_ADVERTISE is an address; default: the address.",
    )
    jwt_issuer: str = Field(
        default="",
        pattern=r"^(https?://[^\s@]+)?$",
        description="Issuer of the tokens that PARLEY_AUTH=jwt accepts, as in their claim iss: an https URL.",
    )
    jwt_audience: str = Field(default="", description="The value that their claim aud must have.")
    jwt_keys_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s@]+)?$",
        description="URL of the issuer's keys; default: the one in its /.well-known/openid-configuration.",
    )
    jwt_algorithms: str = Field(
        default="RS256,ES256",
        pattern=rf"^{_ALGORITHM}(,{_ALGORITHM})*$",
        description="Algorithms that tokens may be signed with.",
    )
    jwt_tenant_claim: str = Field(
        default="tenant", min_length=1, description="The claim that names the tenant."
    )
    jwt_roles_claim: str = Field(
        default="roles", min_length=1, description="The claim with roles: read, debate, steer, admin."
    )

    receipt_keys: str = Field(
        default="",
        description="FILE,… of Ed25519 keys of receipts, in PEM: the first private one signs, all verify. A system on one machine makes a "
        "key of its own if this is unset; any other then gives no receipts.",
    )
    receipt_revoked: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_-]*(,[A-Za-z0-9_-]+)*$",
        description="KEY_ID,… of those keys that are revoked: no receipt that they signed verifies any more.",
    )
    retention_days: float = Field(
        default=0.0,
        ge=0,
        le=36_500,
        description="Days that a debate is kept after its last change, once it has ended, is paused or has failed; 0: for ever.",
    )
    retention_tenants: str = Field(
        default="",
        pattern=r"^([^=,]+=[0-9.]+(,[^=,]+=[0-9.]+)*)?$",
        description="TENANT=DAYS,… for tenants with another retention; 0: for ever.",
    )
    audit_retention_days: float = Field(
        default=0.0,
        ge=0,
        le=36_500,
        description="Days that an entry of the audit log is kept. Whole parts are removed: it stays a day longer; 0: for ever.",
    )

    tenant_debates: int = Field(
        default=500,
        ge=0,
        le=10_000,
        description="Debates of one tenant that run or wait to run, on all replicas; those that wait for a person or a provider "
        "do not count. 0, here and below: no limit.",
    )
    tenant_waiting: int = Field(
        default=5000,
        ge=0,
        le=10_000,
        description="Debates of one tenant that wait for a person or a provider.",
    )
    tenant_requests: int = Field(default=6000, ge=0, description="Calls of one tenant a minute.")
    tenant_watches: int = Field(
        default=1000,
        ge=0,
        description="Streams of one tenant that follow debates, at a time, on all replicas. As many as one replica serves while the "
        "debates of others take a sixth longer; more replicas serve more.",
    )
    tenant_document_bytes: int = Field(
        default=40 * 1024 * 1024,
        ge=0,
        le=2**40,
        description="Bytes of the context documents of one tenant's debates that one replica runs at a time; others of its debates wait.",
    )
    tenant_tokens: int = Field(
        default=0, ge=0, description="Tokens of one tenant a day (UTC), after which no debate is accepted."
    )
    tenant_cost_usd: float = Field(
        default=0.0,
        ge=0,
        le=1e9,
        description="US dollars of one tenant a day (UTC), of calls whose price is known, after which no debate is accepted.",
    )
    tenant_bytes: int = Field(
        default=0, ge=0, description="Bytes of one tenant's debates, after which no debate is accepted."
    )

    @field_validator("retention_tenants")
    @classmethod
    def _check_retention(cls, tenants: str) -> str:
        Retention.parse(0, tenants)
        return tenants

    @field_validator("research_search")
    @classmethod
    def _check_search(cls, url: str) -> str:
        if url and not is_http_url(url):
            raise ValueError(NO_HTTP_URL)
        return url

    @field_validator("research_feeds")
    @classmethod
    def _check_feeds(cls, urls: str) -> str:
        feeds = split_list(urls)
        if not all(map(is_http_url, feeds)):
            raise ValueError(NO_HTTP_URL)
        if len(feeds) > _MAX_FEEDS:
            raise ValueError(f"must be at most {_MAX_FEEDS}")
        return urls

    @field_validator("research_mcp")
    @classmethod
    def _check_names(cls, servers: tuple[ToolServerSetting, ...]) -> tuple[ToolServerSetting, ...]:
        if len({(each.name, each.tool) for each in servers}) < len(servers):
            raise ValueError("must not name the same tool of a server twice")
        return servers

    @field_validator("research_networks")
    @classmethod
    def _check_networks(cls, networks: str) -> str:
        try:
            parse_networks(networks)
        except ValueError:
            raise ValueError("must be networks such as 10.1.0.0/16,fd00:1::/32") from None
        return networks

    @model_validator(mode="after")
    def _check_issuer_complete(self) -> Self:
        if "jwt" not in self.auth_methods:
            return self
        if not (self.jwt_issuer and self.jwt_audience):
            raise ValueError("PARLEY_AUTH=jwt needs PARLEY_JWT_ISSUER and PARLEY_JWT_AUDIENCE")
        for name, url in (("PARLEY_JWT_ISSUER", self.jwt_issuer), ("PARLEY_JWT_KEYS_URL", self.jwt_keys_url)):
            if url.startswith("http://") and not is_loopback(urlsplit(url).hostname or ""):
                raise ValueError(
                    f"{name} must begin with https://, else the keys could be changed on the way"
                )
        return self

    def receipt_key_source(self, own_folder: Path | None) -> "ReceiptKeys":
        """Return the keys of receipts, or of this folder if none are set. Raise ConfigurationError if a file cannot be used."""
        from parley.orchestrator.api.receipts import ReceiptKeys

        files, revoked = split_list(self.receipt_keys), split_list(self.receipt_revoked)
        if revoked and not files:
            raise ConfigurationError("PARLEY_RECEIPT_REVOKED needs PARLEY_RECEIPT_KEYS: set both, or neither")
        return ReceiptKeys.create(files, revoked, own_folder)

    def tenant_limits(self) -> TenantLimits:
        """Return the limits of each tenant."""
        return TenantLimits(
            debates=self.tenant_debates,
            waiting=self.tenant_waiting,
            requests=self.tenant_requests,
            watches=self.tenant_watches,
            tokens=self.tenant_tokens,
            cost_micros=round(self.tenant_cost_usd * 1_000_000),
            stored_bytes=self.tenant_bytes,
        )

    def peers(self) -> Mapping[str, str]:
        """Return the addresses of the services that it calls, each by its setting."""
        names = ("gateway", "convergence", "ratings", "memory")
        return {f"PARLEY_{name.upper()}": getattr(self, name) for name in names}

    def resolve_address(self) -> str:
        """Return the host and port of `advertise`, with this service's port if it names none; empty if it is."""
        host = self.advertise
        has_port = re.fullmatch(r"(\[.*\]|[^:]*):\d+", host)
        return host if not host or has_port else join_address(host, self.port)

    def retention(self) -> Retention:
        """Return how long debates are kept."""
        return Retention.parse(self.retention_days, self.retention_tenants)

    def create_web_sources(self, now: Callable[[], datetime]) -> "WebSources | None":
        """Return what is read on the web for debates, or None if nothing is switched on.

        Raises:
            ConfigurationError: the libraries that it needs are not installed, or the program of an MCP server.
        """
        if not (self.research_search or self.research_feeds or self.research_pages or self.research_mcp):
            return None
        if any(find_spec(each) is None for each in ("feedparser", "mcp", "trafilatura")):
            raise ConfigurationError(
                "PARLEY_RESEARCH_… needs the extra `research`: install it with pip install 'parley[research]', or unset"
                " PARLEY_RESEARCH_SEARCH, PARLEY_RESEARCH_FEEDS, PARLEY_RESEARCH_PAGES and PARLEY_RESEARCH_MCP"
            )
        from parley.orchestrator.research.fetcher import Fetcher
        from parley.orchestrator.research.sources import WebSources, create_search_fetcher

        ports = frozenset(map(int, split_list(self.research_ports)))
        return WebSources(
            Fetcher(Reach(parse_networks(self.research_networks), ports), self.research_seconds),
            create_search_fetcher(self.research_search, self.research_seconds),
            now,
            search_url=self.research_search,
            feeds=tuple(split_list(self.research_feeds)),
            reads_pages=self.research_pages,
            servers=tuple(_create_server(each) for each in self.research_mcp),
            results=self.research_results,
            seconds=self.research_seconds,
        )

    def runner_settings(self, *, exclusive: bool) -> "RunnerSettings":
        """Return the settings of the runner."""
        from parley.orchestrator.engine.document_limits import DocumentLimits
        from parley.orchestrator.engine.runner import RunnerSettings

        return RunnerSettings(
            lease_seconds=self.lease_seconds,
            poll_seconds=self.poll_seconds,
            max_debates=self.max_debates,
            exclusive=exclusive,
            adopt=self.adopt,
            documents=DocumentLimits(self.max_document_bytes, self.tenant_document_bytes),
        )


def _create_server(setting: ToolServerSetting) -> "ToolServer":
    from parley.orchestrator.research.servers import ToolServer

    program, *arguments = shlex.split(setting.command)
    # Found once: what it is does not change with the folder that a server is started in.
    found = shutil.which(program)
    if found is None:
        raise ConfigurationError(
            f"PARLEY_RESEARCH_MCP: the program {program!r} of {setting.name} was not found; install it, or name its path"
        )
    return ToolServer(setting.name, (str(Path(found).absolute()), *arguments), setting.tool, setting.argument)
