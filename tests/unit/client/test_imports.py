"""What a command has not imported when it first asks someone: what it does not need then makes it late."""

import json
import os
import subprocess
import sys
from pathlib import Path

_STAGES = """
import sys

def loaded():
    return sorted(sys.modules)

import parley.cli.app
stages = {"parley --help": loaded()}
import parley.client, parley.cli.commands.debate, parley.cli.commands.debates, parley.local
stages["parley debate, beside a server"] = loaded()
import parley.orchestrator.settings, parley.gateway.__main__
stages["before a provider is asked about its models"] = loaded()

import asyncio, json
from parley.local import LocalOptions, local_system

async def run():
    async with local_system(LocalOptions(begins_debate=True)):
        stages["parley debate, alone"] = loaded()

asyncio.run(run())
import parley.orchestrator.phases.analysis.analyse, parley.orchestrator.phases.record
stages["what follows an answer"] = loaded()
print(json.dumps(stages))
"""
_NEVER = (
    "cryptography",
    "genai_prices",
    "markdown_it",
    "mcp",
    "nh3",
    "pymongo",
    "qdrant_client",
    "starlette",
)
_NOT_LOADED = {
    "parley --help": (
        *_NEVER,
        "asyncio",
        "google.protobuf",
        "grpc",
        "parley.client",
        "pydantic",
        "rich",
        "yaml",
    ),
    "parley debate, beside a server": (
        *_NEVER,
        "aiohttp",
        "html",
        "importlib.metadata",
        "numpy",
        "openai",
        "opentelemetry.metrics",
        "parley.cli.commands.follow",
        "parley.cli.input.evaluation_request",
        "parley.cli.terminal.display",
        "parley.storage.sqlite",
        "pydantic",
        "pydantic_core",
        "pygments",
        "rich",
        "structlog",
        "tenacity",
        "yaml",
        "zipfile",
    ),
    "before a provider is asked about its models": (
        *_NEVER,
        "jsonschema",
        "parley.memory.__main__",
        "parley.orchestrator.__main__",
        "referencing",
    ),
    "parley debate, alone": (
        *_NEVER,
        "aiosmtplib",
        "httpcore2._sync",
        "numpy",
        "onnxruntime",
        "openai.resources",
        "openai.types.chat",
        "openai.types.responses",
        "parley.config.entries",
        "parley.cli.commands.follow",
        "parley.convergence.__main__",
        "parley.orchestrator.api.report",
        "parley.orchestrator.formats.arena",
        "parley.orchestrator.formats.moderated",
        "parley.orchestrator.model.citations",
        "parley.ratings.__main__",
        "rich",
        "safetensors",
        "tenacity",
        "tokenizers",
        "yaml",
        "zstandard",
    ),
    "what follows an answer": ("parley.orchestrator.model.citations",),
}
"""What no module of a stage imports, nor starting what it starts."""
_MOST_MODULES = {
    "parley --help": 150,
    "parley debate, beside a server": 445,
    "before a provider is asked about its models": 940,
    "parley debate, alone": 1248,
}
"""How many modules there are in each stage, and a few more: who needs others finds out what they cost."""


def test_a_command_imports_nothing_that_its_first_call_does_not_need(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PARLEY_", "OPENAI_"))}
    ran = subprocess.run(
        [sys.executable, "-c", _STAGES],
        env=kept
        | {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
            "PARLEY_LOCAL_SERVERS": "off",
            "PARLEY_STORE": f"sqlite:///{tmp_path}",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    stages: dict[str, list[str]] = json.loads(ran.stdout)
    assert stages.keys() == _NOT_LOADED.keys()
    loaded = {
        stage: [name for name in names if name in stages[stage]] for stage, names in _NOT_LOADED.items()
    }
    assert loaded == {stage: [] for stage in stages}
    counts = {stage: len(names) for stage, names in stages.items()}
    assert all(counts[stage] <= most for stage, most in _MOST_MODULES.items()), counts
