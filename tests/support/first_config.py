"""The types that a configuration is checked by, made when this is imported: a fork that reads one need not make them."""

from pathlib import Path

from parley.config.loading import loads

NOTHING = loads("{}", "parley.yaml", Path())
