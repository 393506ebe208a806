"""What the measured system reads from its environment. Imports nothing else, so that a start can be timed."""

import os
from pathlib import Path

MODEL = "bench-model"


def use_environment(folder: Path, base_url: str) -> None:
    """Let nothing but this say what the system does."""
    for name in [name for name in os.environ if name.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_"))]:
        del os.environ[name]
    os.environ |= {
        "OPENAI_API_KEY": "bench",
        "OPENAI_BASE_URL": base_url,
        "PARLEY_MODEL": MODEL,
        "PARLEY_LOCAL_MODEL": "off",
        "PARLEY_STORE": f"sqlite:///{folder}",
        # One tenant asks for more than any does: what is measured is the system, not its limits.
        "PARLEY_TENANT_DEBATES": "0",
        "PARLEY_TENANT_REQUESTS": "0",
        "PARLEY_TENANT_WATCHES": "0",
    }
