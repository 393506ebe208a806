"""The configuration that holds without a file. It is what an empty file says, without an import of what reads one."""

from typing import Final

from parley.config.file import DEFAULT_TEAM, OWN_PROVIDERS, Agent, ConfigFile
from parley.config.places import Places

DEFAULT: Final = ConfigFile(
    agents=tuple(Agent(role, role, role) for role in DEFAULT_TEAM),
    judge=Agent("judge", "judge", "generalist"),
    debate=None,
    providers=OWN_PROVIDERS,
    routes=(),
    notices=(),
    warnings=(),
    places=Places("", {}),
    team_given=False,
    judge_given=False,
    empty=True,
    gaps={},
)
