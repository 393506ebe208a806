"""The analysis of an answer: one event after it, whatever the call comes to."""

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.phases.analysis.formal import check_formal_statements
from parley.orchestrator.phases.analysis.ground import ground_answer
from parley.orchestrator.phases.analysis.ground_without_call import KEY
from parley.runtime.work_words import AFTER_THE_ANSWER
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import AnswerAnalysed


async def analyse_answer(debate: Debate, outcome: Outcome) -> None:
    """Find out what the answer rests on and record it, if that is wanted. What is missing is a warning."""
    if not debate.spec.analysis or debate.is_demonstration:
        return
    checks = await check_formal_statements(debate, outcome)
    analysis = await ground_answer(debate, outcome)
    analysis.formal_checks.extend(checks)
    if analysis.missing:
        debate.warn(KEY, f"the answer was not analysed: {analysis.missing}")
    debate.record_event(f"{AFTER_THE_ANSWER}analysis", AnswerAnalysed(analysis=analysis))
