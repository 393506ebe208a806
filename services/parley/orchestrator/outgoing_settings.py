"""Settings of what leaves the orchestrator for systems of others: hooks, their links, and issues made of decisions."""

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from parley.orchestrator.delivery.channels.mail_server import Mail, domain_of, is_mail_server
from parley.orchestrator.outgoing.reach import Reach, parse_hosts
from parley.orchestrator.outgoing.web_address import is_http_url
from parley.runtime.clock import Clock
from parley.runtime.comma_lists import SecretList, split_list
from parley.runtime.settings import ServiceSettings

if TYPE_CHECKING:  # imported on use: settings are read by commands that send nothing
    from parley.orchestrator.delivery.channels.channels import Channels
    from parley.orchestrator.delivery.links import LinkRules
    from parley.orchestrator.peers.issue_tracker import IssueTracker

NO_HTTP_URL: Final = "must begin with http:// or https://, name a host, and hold no space and no @"
_TRACKER_SECONDS: Final = 10.0
_TRACKER_BYTES: Final = 8 * 1024 * 1024
"""A page of 50 issues of GitHub's largest size, and its own words about each."""
_SECRET: Final = re.compile(r"(whsec_)?[A-Za-z0-9+/]{32,128}={0,2}")


class OutgoingSettings(ServiceSettings):
    """The settings of hooks and of the issue tracker."""

    follow_up_url: SecretStr | None = Field(
        default=None,
        description="Where an issue is created from a decision, if the person wants one: GitHub's https://api.github.com/repos/OWNER/"
        "REPOSITORY/issues, GitLab's https://gitlab.com/api/v4/projects/ID/issues, or any URL that takes a POST of title, body and labels. Unset: not offered.",
    )
    follow_up_token: SecretStr | None = Field(
        default=None, description="Sent to that URL as a bearer token, in ASCII without spaces."
    )
    follow_up_secret: SecretStr | None = Field(
        default=None,
        description="Signs what is sent there by the Standard Webhooks specification: whsec_ and 24 to 64 bytes in base64.",
    )
    follow_up_search: SecretStr | None = Field(
        default=None,
        description="URL of that tracker with {debate} in it, that answers with a list of the issues that hold this text, so that no issue "
        "is made twice. GitHub and GitLab need none.",
    )
    hook_hosts: str = Field(
        default="",
        description="Hosts and networks, as hooks.internal,10.1.0.0/16,…, to which hooks may send although they are not public, at every "
        "port, and by plain HTTP. Through the proxy of HTTPS_PROXY go requests to hosts that are named here, and no others.",
    )
    hook_folder: Path | None = Field(
        default=None,
        description="Folder in which hooks may write files, each tenant below its own name. Unset: nowhere.",
    )
    hook_stdout: bool = Field(
        default=False,
        description="Whether hooks may write lines to standard output; with parley up and the commands, they may unless it is false.",
    )
    mail_server: SecretStr | None = Field(
        default=None,
        description="Server through which hooks send mail: smtps://USER:PASSWORD@HOST:PORT, or smtp:// with STARTTLS, which a server on "
        "this machine may lack. Unset: no mail.",
    )
    mail_from: str = Field(default="", description="Address that mail of hooks comes from.")
    mail_domains: str = Field(
        default="", description="Domains, as example.org,…, to whose addresses hooks may send mail."
    )
    delivery_days: float = Field(
        default=14.0,
        gt=0,
        le=36_500,
        description="Days that deliveries to hooks are listed after they were delivered or became dead letters.",
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s@?#]+[^\s@?#/])?$",
        description="Where people reach the edge's console, such as https://parley.example.org: deliveries to hooks link to a debate's page there. Unset: they have no link.",
    )

    link_secrets: SecretList = Field(
        default=SecretStr(""),
        description="Secrets that sign one-time links, 32 characters or more each, separated by commas. The first signs; all are accepted. "
        "Hooks that are created for it then carry links by which their readers answer a debate that waits. Unset: none.",
    )
    link_hours: float = Field(
        default=72.0,
        gt=0,
        le=24 * 365,
        description="Hours after which a one-time link expires; with its checkpoint at the latest.",
    )

    @model_validator(mode="after")
    def _check_links_have_url(self) -> Self:
        if self.link_secrets.get_secret_value() and not self.public_url:
            raise ValueError(
                "PARLEY_LINK_SECRETS needs PARLEY_PUBLIC_URL, to which links lead: set both, or neither"
            )
        return self

    def link_rules(self) -> "LinkRules":
        """Return which links deliveries have."""
        from parley.orchestrator.delivery.links import LinkRules
        from parley.orchestrator.links.tokens import LinkTokens

        secrets = split_list(self.link_secrets.get_secret_value())
        tokens = LinkTokens(secrets) if secrets else None
        return LinkRules(self.public_url, tokens, timedelta(hours=self.link_hours))

    @field_validator("follow_up_url", "follow_up_search")
    @classmethod
    def _check_http_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not is_http_url(url.get_secret_value()):
            raise ValueError(NO_HTTP_URL)
        return url

    @field_validator("follow_up_token")
    @classmethod
    def _check_header_value(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise ValueError("must be ASCII without spaces and control characters")
        return token

    @field_validator("follow_up_secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not _SECRET.fullmatch(secret.get_secret_value()):
            raise ValueError("must be whsec_ and 24 to 64 bytes in base64")
        return secret

    @field_validator("follow_up_search")
    @classmethod
    def _check_placeholder(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and "{debate}" not in url.get_secret_value():
            raise ValueError("must hold {debate}, in whose place the debate's id is put")
        return url

    @field_validator("hook_hosts")
    @classmethod
    def _check_hosts(cls, hosts: str) -> str:
        try:
            parse_hosts(hosts)
        except ValueError:
            raise ValueError("must be hosts and networks, as hooks.internal,10.1.0.0/16") from None
        return hosts

    @field_validator("mail_server")
    @classmethod
    def _check_mail_server(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not is_mail_server(url.get_secret_value()):
            raise ValueError("must be smtps://USER:PASSWORD@HOST:PORT or smtp://…; in a password, %40 is @")
        return url

    @model_validator(mode="after")
    def _check_mail(self) -> Self:
        if self.mail_server is not None and not (domain_of(self.mail_from) and split_list(self.mail_domains)):
            raise ValueError("PARLEY_MAIL_SERVER needs PARLEY_MAIL_FROM, an address, and PARLEY_MAIL_DOMAINS")
        return self

    @field_validator("hook_folder")
    @classmethod
    def _check_folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_dir():
            raise ValueError("must be a folder that is there")
        return folder

    @model_validator(mode="after")
    def _check_tracker_has_url(self) -> Self:
        for name in ("token", "secret", "search"):
            if getattr(self, f"follow_up_{name}") is not None and self.follow_up_url is None:
                variable = f"PARLEY_FOLLOW_UP_{name.upper()}"
                raise ValueError(f"{variable} needs PARLEY_FOLLOW_UP_URL: set both, or neither")
        return self

    def create_issue_tracker(self, clock: Clock) -> "IssueTracker | None":
        """Return the issue tracker for decisions, or None if none is set."""
        if self.follow_up_url is None:
            return None
        from parley.orchestrator.outgoing.sender import GuardedSender
        from parley.orchestrator.peers.issue_forms import form_of
        from parley.orchestrator.peers.issue_tracker import IssueTracker

        url, search = self.follow_up_url.get_secret_value(), _reveal(self.follow_up_search)
        hosts = frozenset((urlsplit(each).hostname or "").removesuffix(".") for each in (url, search) if each)
        return IssueTracker(
            url,
            form_of(url, search),
            GuardedSender(Reach(hosts=hosts), seconds=_TRACKER_SECONDS, max_bytes=_TRACKER_BYTES),
            clock,
            token=_reveal(self.follow_up_token),
            secret=_reveal(self.follow_up_secret),
        )

    def create_channels(self, clock: Clock) -> "Channels":
        """Return what creates the channels of hooks, within what is allowed here."""
        from parley.orchestrator.delivery.channels.channels import Channels
        from parley.orchestrator.outgoing.sender import GuardedSender

        hosts, networks = parse_hosts(self.hook_hosts)
        sender = GuardedSender(Reach(networks, ports=None, hosts=hosts, needs_tls=True))
        mail = None
        if self.mail_server is not None:
            domains = frozenset(map(str.lower, split_list(self.mail_domains)))
            mail = Mail(self.mail_server.get_secret_value(), self.mail_from, domains)
        return Channels(sender, clock, self.hook_folder, self.hook_stdout, mail)


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
