"""Families of models, by their names: models of one family make the same mistakes, and are one voice in a vote."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from parley.v1.agent_pb2 import Agent

FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "01-ai": ("yi",),
    "ai21": ("ai21", "jamba"),
    "amazon": ("amazon", "nova", "titan"),
    "anthropic": ("anthropic", "claude"),
    "cohere": ("cohere", "command", "aya"),
    "deepseek": ("deepseek",),
    "google": ("google", "gemini", "gemma", "palm"),
    "ibm": ("granite",),
    "meta": ("meta", "llama", "codellama"),
    "microsoft": ("phi", "wizardlm"),
    "minimax": ("minimax",),
    "mistral": (
        "mistral",
        "mistralai",
        "mixtral",
        "ministral",
        "codestral",
        "devstral",
        "magistral",
        "pixtral",
    ),
    "moonshot": ("moonshot", "moonshotai", "kimi"),
    "nvidia": ("nemotron",),
    "openai": ("openai", "gpt", "chatgpt", "o1", "o3", "o4", "davinci"),
    "qwen": ("qwen", "qwq", "alibaba"),
    "xai": ("xai", "grok"),
    "zhipu": ("glm", "chatglm", "zhipu"),
}
"""The words by which a model, or its maker, names a family."""

UNKNOWN_FAMILY: Final = "unknown"
"""What a debate records of a model that no family is known of, though the name of its route contains one."""

_FAMILY_OF_WORD: Final = {word: family for family, words in FAMILIES.items() for word in words}
_WORD: Final = re.compile(r"[a-z0-9]+")
_VERSION: Final = re.compile(r"(?<=[a-z])\d+[a-z]?$")
_XAI: Final = re.compile(r"\bx-ai\b")


@lru_cache(1024)  # it is asked some forty times to create a debate
def family_of(model: str) -> str:
    """Return the family of a model, or of a route `provider/model`; empty if its name does not show it.

    The model's own words count before those of the providers that it is reached through: `groq/llama-3.3-70b` is of `meta`
    and `openrouter/openai/o3` of `openai`. Of several words the first counts, which of a distilled model is its maker.
    """
    for segment in reversed(_XAI.sub("xai", model.lower()).split("/")):
        for word in _WORD.findall(segment):
            family = _FAMILY_OF_WORD.get(word) or _FAMILY_OF_WORD.get(_VERSION.sub("", word))
            if family:
                return family
    return ""


def family_of_agent(agent: Agent) -> str:
    """Return the family of an agent's model, by the first of its routes, which is the one that answers unless it fails."""
    if agent.model_family:
        return "" if agent.model_family == UNKNOWN_FAMILY else agent.model_family
    return family_of(agent.routes[0]) if agent.routes else ""


def shared_family(agents: Sequence[Agent]) -> str:
    """Return the family that the models of all agents share; empty if they share none, or it is unknown.

    Agents that name the same routes are answered by the same model, so that they share it whatever its family: the route
    is returned if that is not known. One agent alone shares nothing.
    """
    if len(agents) < 2:
        return ""
    families = {family_of_agent(agent) for agent in agents}
    if len(families) == 1 and (family := families.pop()):
        return family
    if len({tuple(agent.routes) for agent in agents}) == 1:
        return agents[0].routes[0] if agents[0].routes else "the default route"
    return ""
