"""What the memory service reads from the environment."""

from typing import ClassVar

from pydantic import Field

from parley.runtime.settings import ServiceSettings


class MemorySettings(ServiceSettings):
    """Settings of the memory service."""

    service_name: ClassVar[str] = "memory"

    port: int = Field(default=7405, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    store: str = Field(
        default="sqlite:///parley-data", description="sqlite:///FOLDER or mongodb://HOST[:PORT][/PREFIX]."
    )
    vectors: str = Field(default="edge:parley-data/vectors", description="edge:FOLDER or http://HOST:6334.")
    convergence: str = Field(default="127.0.0.1:7403", description="Address of the convergence service.")
    recall_floor_percent: int = Field(
        default=32, ge=1, le=100, description="Likeness below which a past debate is not recalled."
    )
