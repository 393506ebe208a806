"""The orchestrator's settings, from `PARLEY_…` variables."""

import re
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from parley.orchestrator.engine.runner import RunnerSettings
from parley.orchestrator.peers.issue_tracker import IssueTracker, is_http_url
from parley.runtime.settings import ServiceSettings

__all__ = ["OrchestratorSettings"]


class OrchestratorSettings(ServiceSettings):
    """What the orchestrator reads."""

    port: int = Field(default=7401, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    store: str = Field(
        default="sqlite:///parley-data", description="sqlite:///FOLDER or mongodb://HOST[:PORT][/PREFIX]."
    )
    gateway: str = Field(default="127.0.0.1:7402", description="Address of the gateway.")
    convergence: str = Field(default="127.0.0.1:7403", description="Address of convergence.")
    ratings: str = Field(default="127.0.0.1:7404", description="Address of ratings.")
    memory: str = Field(default="127.0.0.1:7405", description="Address of memory.")
    lease_seconds: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description="Seconds without a sign of life after which a debate is taken over.",
    )
    poll_seconds: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="Seconds between two looks at the store for debates and interventions.",
    )
    max_debates: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Debates run at a time by one replica; those that wait for a person do not count.",
    )
    follow_up_seconds: float = Field(
        default=600.0,
        ge=0,
        le=7 * 24 * 3600,
        description="Seconds after an answer in which ratings and memory are told of it, or a warning is left; "
        "0: for as long as it takes.",
    )
    follow_up_url: SecretStr | None = Field(
        default=None,
        description="Where issues are made of decisions, if the person wants one: a URL that takes a POST of title, body and "
        "labels, as https://api.github.com/repos/OWNER/REPOSITORY/issues does. Unset: none is offered.",
    )
    follow_up_token: SecretStr | None = Field(
        default=None, description="Sent to that URL as a bearer token, in ASCII without spaces."
    )
    adopt: bool = Field(
        default=True, description="Whether debates left behind by another process are taken on unasked."
    )
    heartbeat_seconds: float = Field(
        default=15.0,
        gt=0,
        le=15,
        description="Seconds of silence after which a watcher hears a sign of life.",
    )

    reader_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds that a watcher may take to accept one message before it is cut off.",
    )
    advertise: str = Field(
        default="",
        pattern=r"^(\S+:\d+)?$",
        description="HOST:PORT by which other replicas reach this one; default: where it listens.",
    )

    @field_validator("follow_up_url")
    @classmethod
    def _is_http(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not is_http_url(url.get_secret_value()):
            raise ValueError("must begin with http:// or https://, name a host, and hold no space and no @")
        return url

    @field_validator("follow_up_token")
    @classmethod
    def _fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise ValueError("must be ASCII without spaces and control characters")
        return token

    @model_validator(mode="after")
    def _token_has_an_address(self) -> Self:
        if self.follow_up_token is not None and self.follow_up_url is None:
            raise ValueError(
                "PARLEY_FOLLOW_UP_TOKEN is of use with PARLEY_FOLLOW_UP_URL alone: set both, or none"
            )
        return self

    def issue_tracker(self) -> IssueTracker | None:
        """Return where issues are made of decisions; None where that is not set."""
        if self.follow_up_url is None:
            return None
        token = self.follow_up_token.get_secret_value() if self.follow_up_token else ""
        return IssueTracker(self.follow_up_url.get_secret_value(), token)

    def runner(self, *, exclusive: bool) -> RunnerSettings:
        """Return the part that the runner takes."""
        return RunnerSettings(
            lease_seconds=self.lease_seconds,
            poll_seconds=self.poll_seconds,
            max_debates=self.max_debates,
            exclusive=exclusive,
            adopt=self.adopt,
        )
