"""What a test of every format needs to hold a debate of each."""

import pytest

from parley.orchestrator.formats.arena.settings import SETTINGS as ARENA
from parley.v1.arena_pb2 import ArenaSettings
from tests.support.moderated_debates import ModeratedScript, moderated_settings
from tests.support.scripted_gateway import ScriptedGateway


def in_every_format() -> pytest.MarkDecorator:
    """Run a test for each format, with a `gateway` of its own and the `fields` of the debate that name the format."""
    return pytest.mark.parametrize(
        ("gateway", "fields"),
        [
            (ScriptedGateway(), {}),
            (ScriptedGateway(), {"format": "arena@1", "settings": ARENA.with_defaults(ArenaSettings())}),
            (
                ModeratedScript().gateway(),
                {"format": "moderated@1", "settings": moderated_settings(checkpoints=False)},
            ),
        ],
        ids=["panel", "arena", "moderated"],
    )
