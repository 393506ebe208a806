"""What is wrong with a configuration file."""

from parley.runtime.errors import ConfigurationError


class ConfigError(ConfigurationError):
    """The file cannot be used.

    `problems` has one line each, in the order of the file: `debate.yaml:12: agents[1].modle: unknown key; …`.
    """
