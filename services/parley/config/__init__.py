"""The file in which a person says who debates, on which models, and how.

It knows the contract and what services share, and no service.
"""

from parley.config.entries import DebateEntry, SummarizationEntry
from parley.config.errors import ConfigError
from parley.config.file import Agent, ConfigFile, Provider, Route
from parley.config.loading import defaults, load, loads, read
from parley.config.prompts import Prompt
from parley.config.roles import OwnRole, canonical_role
from parley.config.team import DEFAULT_TEAM

__all__ = [
    "DEFAULT_TEAM",
    "Agent",
    "ConfigError",
    "ConfigFile",
    "DebateEntry",
    "OwnRole",
    "Prompt",
    "Provider",
    "Route",
    "SummarizationEntry",
    "canonical_role",
    "defaults",
    "load",
    "loads",
    "read",
]
