"""The file in which a person says who debates, on which models, and how."""

from parley.config.entries import DebateEntry, SummarizationEntry, TerminationEntry
from parley.config.errors import ConfigError
from parley.config.file import DEFAULT_TEAM, Agent, ConfigFile, Provider, Route, defaults, load, loads
from parley.config.prompts import Prompt
from parley.config.roles import canonical_role

__all__ = [
    "DEFAULT_TEAM",
    "Agent",
    "ConfigError",
    "ConfigFile",
    "DebateEntry",
    "Prompt",
    "Provider",
    "Route",
    "SummarizationEntry",
    "TerminationEntry",
    "canonical_role",
    "defaults",
    "load",
    "loads",
]
