"""What the ratings service reads from the environment."""

from typing import ClassVar, Literal

from pydantic import Field

from parley.storage.settings import StoreSettings


class RatingsSettings(StoreSettings):
    """Settings of the ratings service."""

    service_name: ClassVar[str] = "ratings"

    port: int = Field(default=7404, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    weight_rule: Literal["accuracy", "elo"] = Field(
        default="accuracy",
        description="What votes weigh by: accuracy (log-odds of how often an agent was right) or elo (with calibration).",
    )
