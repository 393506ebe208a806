"""What is known about a completed debate besides its answer, as the edge answers it."""

from parley.orchestrator.api.report_analysis import collect_analysis
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.engine.format import Format
from parley.runtime.errors import failed_precondition
from parley.v1.debate_pb2 import Debate
from parley.v1.orchestrator_pb2 import GetAnalysisResponse


def analysis_of(debate: Debate, debate_format: Format | None) -> GetAnalysisResponse:
    """Return what is known about a completed debate. Raise ParleyError while its answer is still to be analysed."""
    if debate.spec.analysis and not debate.HasField("analysis"):
        message = f"the answer of debate {debate.id} is not analysed yet; a system that runs debates does it, within minutes"
        raise failed_precondition("ANALYSIS_PENDING", message)
    return collect_analysis(ReportPage(debate, debate_format))
