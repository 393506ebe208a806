"""What the convergence service reads from the environment."""

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from parley.runtime.settings import ServiceSettings

__all__ = ["ConvergenceSettings", "ModelName"]

ModelName = Literal["minilm", "static", "endpoint"]


class ConvergenceSettings(ServiceSettings):
    """Settings of the convergence service."""

    port: int = Field(default=7403, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    embedding_fine: ModelName = Field(
        default="minilm", description="What embeds positions and what is searched for."
    )
    embedding_fast: ModelName = Field(
        default="static", description="What embeds long texts and their sentences."
    )
    embedding_threads: int = Field(
        default=1, ge=1, le=64, description="Texts that one local model embeds at a time."
    )
    embedding_cache: int = Field(default=8192, ge=0, le=1_000_000, description="Vectors kept per model.")
    embedding_base_url: str = Field(
        default="", description="Base URL of an OpenAI-compatible embeddings endpoint."
    )
    embedding_api_key: SecretStr = Field(default=SecretStr(""), description="Its key.")
    embedding_model: str = Field(
        default="text-embedding-3-small", description="The model as the endpoint names it."
    )

    @model_validator(mode="after")
    def _endpoint_is_named(self) -> Self:
        if "endpoint" in (self.embedding_fine, self.embedding_fast) and not self.embedding_base_url:
            raise ValueError(
                "PARLEY_EMBEDDING_BASE_URL: must be set, as PARLEY_EMBEDDING_FINE or PARLEY_EMBEDDING_FAST asks for it"
            )
        return self
