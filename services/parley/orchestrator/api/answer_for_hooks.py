"""The answer of a debate, as hooks are told of it."""

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.engine.format import Formats
from parley.runtime.large_texts import in_thread_if_large


async def write_answer(debates: FoldedDebates, formats: Formats, tenant: str, debate_id: str) -> str:
    """Return the answer of a concluded debate for people, as CommonMark. Raise ParleyError if the debate is gone."""
    debate, size = await debates.get_with_size(tenant, debate_id)
    debate_format = formats.find(debate.spec.format)
    return await in_thread_if_large(size, lambda: answer_markdown(debate, debate_format))
