"""OpenAI itself, or whatever is found at OPENAI_BASE_URL."""

from typing import Final

from parley.gateway.providers.kind import Home, ProviderKind
from parley.gateway.wire.api import Api

MODEL: Final = "gpt-5-mini"  # looked at on 2026-11-26
"""Of agents and judges that name none: small, current, and good enough to debate; PARLEY_MODEL names another.

Before a debate, its seller's list is asked for it. If it is not there, the command says so, and which one takes its place.
"""

KIND: Final = ProviderKind(
    "openai",
    home=Home("https://api.openai.com/v1", MODEL, price_list="openai", api=Api.RESPONSES),
    base_url_variable="OPENAI_BASE_URL",
    sends_organization=True,
)
