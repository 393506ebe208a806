"""What the memory service reads from the environment."""

from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from parley.runtime.loopback import is_loopback
from parley.storage.settings import StoreSettings


class MemorySettings(StoreSettings):
    """Settings of the memory service."""

    service_name: ClassVar[str] = "memory"

    port: int = Field(default=7405, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    vectors: str = Field(
        default="edge:parley-data/vectors", description="edge:FOLDER, or http:// or https://HOST:6334."
    )
    vectors_api_key: SecretStr | None = Field(default=None, description="API key of the Qdrant server.")
    vectors_ca: Path | None = Field(
        default=None,
        description="File of the authority that signs the Qdrant server's certificate, in PEM. Unset: gRPC's own list.",
    )
    convergence: str = Field(default="127.0.0.1:7403", description="Address of the convergence service.")
    recall_floor_percent: int = Field(
        default=28,
        ge=1,
        le=100,
        description="Likeness that one past debate must have, else none is recalled.",
    )
    memory_decisions_days: float = Field(
        default=0,
        ge=0,
        description="Days after which a decision that is in the slowest tier is forgotten; 0: never.",
    )
    memory_patterns_days: float = Field(
        default=0,
        ge=0,
        description="Days after which a debate no longer counts in critique patterns; 0: for as long as it is remembered.",
    )
    memory_positions_days: float = Field(
        default=0,
        ge=0,
        description="Days after which a debate's stands leave the position ledger; 0: for as long as it is remembered.",
    )
    memory_moments_days: float = Field(
        default=0,
        ge=0,
        description="Days after which a debate's moments are deleted; 0: for as long as it is remembered.",
    )

    @model_validator(mode="after")
    def _check_vectors(self) -> Self:
        address = urlsplit(self.vectors)
        if self.vectors_ca is not None and address.scheme != "https":
            raise ValueError("PARLEY_VECTORS_CA needs https:// in PARLEY_VECTORS")
        if self.vectors_api_key is None or address.scheme == "https":
            return self
        if address.scheme != "http":
            raise ValueError("PARLEY_VECTORS_API_KEY needs https:// in PARLEY_VECTORS")
        if self.tls != "off" and not is_loopback(address.hostname or ""):
            raise ValueError(
                "PARLEY_VECTORS_API_KEY would be sent in plaintext: write https:// in PARLEY_VECTORS, "
                "or set PARLEY_TLS=off to allow plaintext"
            )
        return self
