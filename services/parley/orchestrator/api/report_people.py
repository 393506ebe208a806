"""What the people around a debate contributed to it, as sections of its report."""

from collections.abc import Iterator

from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.log.feedback import Feedback
from parley.runtime.safe_markdown import inline, list_item, quote
from parley.v1.debate_pb2 import Clarification, Intervention


def clarifications_section(page: ReportPage) -> Iterator[str]:
    """Yield what the person who asks was asked, and the answers."""
    if page.debate.clarifications:
        yield "## Clarifications"
    for each in page.debate.clarifications:
        yield from clarification_blocks(page, each)


def clarification_blocks(page: ReportPage, each: Clarification, asker: str = "") -> Iterator[str]:
    """Yield the questions of one checkpoint, each with its answer; `asker`: what who asked is called, if not by its name."""
    answers = {said.question_id: said.text for said in each.answer.answers}
    for asked in each.questions.questions:
        who = f"{asker or page.name_of(asked.agent_id)} asked" if asked.agent_id else "Asked"
        yield f"{who}: {inline(page.names.put_in(asked.text))}"
        yield quote(answers[asked.id]) if asked.id in answers else "It was not answered by itself."
    if each.answer.text.strip():
        yield "To all questions, the person said:"
        yield quote(each.answer.text)
    elif not answers:
        yield "The person had the debate go on without an answer."


def interventions_section(page: ReportPage) -> Iterator[str]:
    """Yield what people did while the debate ran."""
    if page.debate.interventions:
        yield "## Interventions"
        yield "\n".join(list_item(_describe_intervention(page, each)) for each in page.debate.interventions)


def _describe_intervention(page: ReportPage, intervention: Intervention) -> str:
    """Return what a person did, such as `guide: mind the cost`."""
    name = intervention.WhichOneof("act")
    if name is None:
        return "something that this version does not know"
    act = getattr(intervention, name)
    about = f" {page.name_of(act.agent_id)}" if name in ("mute", "unmute") else ""
    texts = [getattr(act, field) for field in ("text", "reason") if field in act.DESCRIPTOR.fields_by_name]
    texts += [f"{each.question_id}: {each.text}" for each in intervention.answer.answers]
    if name == "approve":
        texts.insert(0, "yes" if act.approved else "no")
    text = "\n".join(each for each in texts if each)
    return f"{name.removesuffix('_debate')}{about}{': ' if text else ''}{text}"


def feedback_section(feedback: Feedback | None) -> Iterator[str]:
    """Yield a person's feedback, if there is one."""
    if feedback is None:
        return
    yield "## Feedback"
    yield f"A person says {'yes' if feedback.value > 0 else 'no'} to this debate ({feedback.value:+d})."
    if feedback.message:
        yield quote(feedback.message)
