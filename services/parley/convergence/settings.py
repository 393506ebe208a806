"""What the convergence service reads from the environment."""

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, SecretStr, model_validator

from parley.runtime.settings import ServiceSettings

ModelName = Literal["minilm", "static", "endpoint"]


class ConvergenceSettings(ServiceSettings):
    """Settings of the convergence service."""

    service_name: ClassVar[str] = "convergence"

    port: int = Field(default=7403, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    embedding_fine: ModelName = Field(default="minilm", description="What embeds what is searched for.")
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
    embedding_api_key_file: Path | None = Field(
        default=None, description="A file that holds its key instead; read again when it changes."
    )
    embedding_model: str = Field(
        default="text-embedding-3-small", description="The model as the endpoint names it."
    )

    agreement_encoder: Path | None = Field(
        default=None,
        description="ONNX file of an NLI cross-encoder that tells whether two positions are the same answer; empty: an agent is asked.",
    )
    agreement_encoder_sha256: str = Field(default="", description="SHA-256 of that file, in hexadecimal.")
    agreement_tokenizer: Path | None = Field(default=None, description="Its tokenizer.json.")
    agreement_head: Path | None = Field(
        default=None,
        description="Its head, as `make agreement-head` writes it.",
    )
    support_head: Path | None = Field(
        default=None,
        description="Another head of it, as `make support-head` writes it, which tells whether a text supports a claim; empty: an agent alone is asked.",
    )
    agreement_threads: int = Field(
        default=2, ge=1, le=64, description="Pairs of positions that are read at a time."
    )
    agreement_cache: int = Field(
        default=16384, ge=0, le=1_000_000, description="Pairs of positions of which the answer is kept."
    )

    @model_validator(mode="after")
    def _check_encoder(self) -> Self:
        parts = {
            "PARLEY_AGREEMENT_ENCODER": self.agreement_encoder,
            "PARLEY_AGREEMENT_ENCODER_SHA256": self.agreement_encoder_sha256,
            "PARLEY_AGREEMENT_TOKENIZER": self.agreement_tokenizer,
            "PARLEY_AGREEMENT_HEAD": self.agreement_head,
        }
        missing = [name for name, value in parts.items() if not value]
        if missing and len(missing) < len(parts):
            raise ValueError(f"{missing[0]}: must be set, as an agreement encoder is asked for")
        if self.support_head and missing:
            raise ValueError(f"{missing[0]}: must be set, as PARLEY_SUPPORT_HEAD is a head of that encoder")
        return self

    @model_validator(mode="after")
    def _check_one_key(self) -> Self:
        if self.embedding_api_key_file and self.embedding_api_key.get_secret_value():
            raise ValueError(
                "PARLEY_EMBEDDING_API_KEY_FILE: set either it or PARLEY_EMBEDDING_API_KEY, as one endpoint has one key"
            )
        return self

    @model_validator(mode="after")
    def _check_endpoint(self) -> Self:
        if "endpoint" in (self.embedding_fine, self.embedding_fast) and not self.embedding_base_url:
            raise ValueError(
                "PARLEY_EMBEDDING_BASE_URL: must be set, as PARLEY_EMBEDDING_FINE or PARLEY_EMBEDDING_FAST asks for it"
            )
        return self
