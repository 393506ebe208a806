"""What is asked of an agent, as its digest stands for it in the log, and what is kept of the answer."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.tasks import AnswerShape, Task, system_part, user_part
from parley.orchestrator.peers.agents import Call, generate_request
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.agent_pb2 import TOOL_FILE_READ, Agent, PromptText, SummarySettings, ToolCall
from parley.v1.debate_pb2 import Work
from tests.support.orchestration import backstage, with_fields

ADA = Agent(
    id="ada",
    name="Ada",
    role="architect",
    routes=("p/m",),
    temperature=0.5,
    system_prompt=PromptText(text="Be bold.", source="ada.md"),
    summaries=SummarySettings(enabled=True, threshold=5000, max_length=9),
)
BO = Agent(id="bo", name="Bo", role="security")
CRITIQUE = Task(
    Work(activity="critique", agent_id="ada", round=2, target_agent_id="bo"),
    (system_part("You plan."), user_part("Why?", 2)),
    100,
)
PROPOSAL = Task(Work(activity="proposal", agent_id="bo", round=1), (user_part("Why?"),))
SHAPE = AnswerShape("s", JudgeAnswer, "{}", lambda answer: answer.description)


def digest_request(
    agent: Agent, task: Task, shape: AnswerShape[JudgeAnswer] | None = None, seconds: float = 90.0
) -> str:
    return digest(generate_request(agent, task, shape, seconds))


@pytest.mark.parametrize(
    ("agent", "task", "shape", "recorded"),
    [
        (ADA, CRITIQUE, SHAPE, "26fed0c9051657368e8f0b7de289e656"),
        (BO, PROPOSAL, None, "853e7b99f82dc4d223991127e50a63ba"),
    ],
)
def test_a_request_has_the_digest_that_logs_already_hold(
    agent: Agent, task: Task, shape: AnswerShape[JudgeAnswer] | None, recorded: str
) -> None:
    """Whoever breaks this stops every open debate with REPLAY_MISMATCH."""
    assert digest_request(agent, task, shape) == recorded


def test_whatever_is_asked_otherwise_has_another_digest() -> None:
    digests = {
        digest_request(BO, PROPOSAL),
        digest_request(with_fields(BO, tools=[TOOL_FILE_READ]), PROPOSAL),
        digest_request(with_fields(BO, tool_call_limit=5), PROPOSAL),
        digest_request(BO, replace(PROPOSAL, max_output_tokens=7)),
        digest_request(BO, replace(PROPOSAL, prompt=(user_part("Why?", 1),))),
        digest_request(BO, PROPOSAL, SHAPE),
        digest_request(BO, PROPOSAL, seconds=1.5),
    }
    assert len(digests) == 7


async def test_of_what_a_model_asked_a_tool_500_characters_are_kept(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage:
        used = ToolCall(name="file_read", arguments="a" * 501, failed=True, characters=12)
        stage.gateway.tool_calls["bo"] = [used]
        agents = stage.replica().dependencies.agents
        reply, _ = await agents.generate(
            Call("t", "deb", "a", 1), generate_request(BO, PROPOSAL, None, seconds=5)
        )
    (kept,) = reply.tool_calls
    assert kept == ToolCall(name="file_read", arguments="a" * 500, failed=True, characters=12)
