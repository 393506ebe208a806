"""The moderated debate, version 2: what the moderator asked stands as a quotation in the prompts after it."""

from dataclasses import replace
from functools import partial
from typing import Final

from parley.orchestrator.formats.moderated.analysis import told_quoted
from parley.orchestrator.formats.moderated.v1 import V1, hold

__all__ = ["V2"]

V2: Final = replace(V1, version=2, run=partial(hold, tell=told_quoted))
