"""What the gateway reads from its environment."""

from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from parley.config.endpoints import find_url_problem
from parley.gateway.routing.call import Timeouts
from parley.gateway.wire.endpoint import SENDING_BYTES, EndpointLimits
from parley.storage.settings import StoreSettings

_TIMEOUTS: Final = Timeouts()
_LIMITS: Final = EndpointLimits()


class GatewaySettings(StoreSettings):
    """Keys, the agents file, and how long a model may take."""

    service_name: ClassVar[str] = "gateway"

    model_config = SettingsConfigDict(validate_by_name=True, validate_by_alias=True)

    port: int = Field(default=7402, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    lease_seconds: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description="Silence of a replica before others take over its stored calls. A stored call outlives its callers "
        "for two of these.",
    )
    agents_file: Path | None = Field(default=None, description="File with agents, providers and routes.")
    prices_file: Path | None = Field(
        default=None, description="JSON file of prices that come before the ones that come along."
    )
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(
        default=None, validation_alias="OPENAI_BASE_URL", pattern=r"^https?://[^\s@]+$"
    )
    openrouter_api_key: SecretStr | None = Field(default=None, validation_alias="OPENROUTER_API_KEY")
    model: str | None = Field(
        default=None, max_length=512, description="Model of agents that name none, or `provider/model`."
    )
    context_tokens: int | None = Field(
        default=None,
        ge=256,
        le=100_000_000,
        description="Tokens that prompt and answer may have together, of routes for which the agents file does not say it. "
        "Unset: as the endpoint lists it, or as it is published.",
    )
    local_servers: str = Field(
        default="auto",
        pattern=r"^(auto|off|[0-9]{1,5}(,[0-9]{1,5})*)$",
        description="Whether model servers on this machine are looked for if no key, base URL or provider is set. auto: "
        "Ollama, LM Studio, vLLM and llama.cpp on their usual ports; or the ports to look at, such as 11434,1234; or off.",
    )
    local_model: Literal["auto", "off", "smollm2-135m", "qwen2.5-0.5b"] = Field(
        default="auto",
        description="The small model that answers if no key, base URL or provider is set, by its name. auto: the one that "
        "comes along, if no model server is found on this machine. off: none.",
    )
    echo: bool = Field(
        default=False,
        description="Whether the route `echo/echo` is offered, which asks no model, repeats what it is asked and says so: to try "
        "out an installation.",
    )
    call_timeout_seconds: float = Field(
        default=90.0, gt=0, le=3600, description="A whole call that says no timeout itself."
    )
    route_attempt_timeout_seconds: float = Field(
        default=_TIMEOUTS.route_attempt_seconds, gt=0, le=3600, description="One route attempt, at most."
    )
    connect_timeout_seconds: float = Field(
        default=_LIMITS.connect_seconds, gt=0, le=600, description="Connecting to an endpoint."
    )
    first_token_timeout_seconds: float = Field(
        default=_LIMITS.first_token_seconds, gt=0, le=3600, description="A streaming endpoint's first text."
    )
    hedge_after_seconds: float | None = Field(
        default=_TIMEOUTS.hedge_seconds,
        gt=0,
        le=3600,
        description="Silence of a route before the next one is asked too; the first to answer is used. "
        "Unset: never.",
    )
    idle_timeout_seconds: float = Field(
        default=_LIMITS.idle_seconds,
        gt=0,
        le=3600,
        description="Silence of a streaming endpoint before it counts as stalled.",
    )
    max_connections: int = Field(
        default=_LIMITS.max_connections, ge=1, le=65535, description="Connections to one endpoint."
    )
    document_cache_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=0,
        le=2**40,
        description="Bytes of documents that are kept for later calls of debates; those of running calls are kept in any case.",
    )
    sending_bytes: int = Field(
        default=SENDING_BYTES,
        ge=1,
        le=2**40,
        description="Bytes of requests that are sent to endpoints at a time, of which one tenant has half at most. What finds no room "
        "waits, and after 10 s is tried again later.",
    )
    trace_content: bool = Field(
        default=_LIMITS.trace_content, description="Whether spans carry prompts and answers."
    )

    @field_validator("openai_base_url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is not None and (wrong := find_url_problem(url)) is not None:
            raise ValueError(wrong)
        return url
