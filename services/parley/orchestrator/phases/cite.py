"""Claims without a source: noted with a proposal, and told to those who criticize and judge it."""

from parley.orchestrator.model.citations import claims_to_cite
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tasks import Prompt
from parley.orchestrator.phases.prompting import quotation
from parley.v1.debate_pb2 import Reply

__all__ = ["note_claims", "unsourced"]


def note_claims(reply: Reply) -> None:
    """Keep with a reply which of its claims need a citation and have none."""
    reply.claims_to_cite.extend(claims_to_cite(reply.rendered or reply.text))


def unsourced(work: Contribution, whose: str) -> Prompt:
    """Return what a prompt says of such claims of a proposal, if it makes any."""
    if not work.claims:
        return ()
    title = (
        f"Claims of {whose} without a source, as a program found them. Some may be right all the same:"
        " hold against the proposal those that it depends on and that you doubt"
    )
    return (quotation(title, "\n".join(f"- {each}" for each in work.claims)),)
