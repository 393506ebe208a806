"""Digests of what agents are asked: what prompts have in common is hashed once, and no digest shows that."""

from collections.abc import Mapping, Sequence

from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.engine.prompt_digests import PromptDigests
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.tasks import AnswerShape, Task, user_part
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Work
from parley.v1.gateway_pb2 import PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER, PromptPart
from tests.support.orchestration import agent
from tests.unit.orchestrator.engine.test_debate import Verdict, verdict

ADA, BO = agent("ada"), agent("bo", system_prompt={"text": "Say »no«."})
DOCUMENTS: Mapping[str, str] = {"a.md": "d1g35t"}
ROLES = {PROMPT_ROLE_SYSTEM: "system", PROMPT_ROLE_USER: "user"}
PARTS = st.builds(
    PromptPart,
    role=st.sampled_from(sorted(ROLES)),
    text=st.sampled_from(["", "Well?", 'Is "water" wet?\n', "¿Está mojada el agua? 水"]),
    shrink_priority=st.integers(0, 2),
    document=st.sampled_from(["", "a.md", "b.md"]),
)
TASKS = st.builds(
    Task,
    st.just(Work(activity="proposal")),
    st.lists(PARTS, min_size=1, max_size=5).map(tuple),
    max_output_tokens=st.sampled_from([0, 20]),
    answer_start=st.sampled_from(["", "{"]),
)


def compute_plain_digest(who: Agent, task: Task, shape: AnswerShape[Verdict] | None, seconds: float) -> str:
    """The digest as it is defined, of the whole value at once."""
    parts = [
        {
            "role": ROLES[part.role],
            "give": part.shrink_priority,
            "document": part.document,
            **({"digest": DOCUMENTS[part.document]} if part.document in DOCUMENTS else {"text": part.text}),
        }
        for part in task.prompt
    ]
    asked = {
        "agent": MessageToDict(who, preserving_proto_field_name=True),
        "answer_start": task.answer_start,
        "max_output_tokens": task.max_output_tokens,
        "prompt": [{name: value for name, value in part.items() if value} for part in parts],
        "schema": [shape.name, shape.json_schema] if shape else None,
        "seconds": seconds,
    }
    return digest({name: value for name, value in asked.items() if value})


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ADA, BO]),
            TASKS,
            st.sampled_from([None, verdict(Verdict)]),
            st.sampled_from([30.0, 0.5]),
        ),
        max_size=6,
    )
)
def test_a_digest_is_that_of_the_whole_question_whatever_was_asked_before(
    asked: list[tuple[Agent, Task, AnswerShape[Verdict] | None, float]],
) -> None:
    digests = PromptDigests()
    for who, task, shape, seconds in asked:
        made = digests.digest(digests.find_start(who, task, DOCUMENTS), task, shape, seconds)
        assert made == compute_plain_digest(who, task, shape, seconds)


def test_of_a_prompt_that_begins_like_the_last_one_only_the_rest_is_hashed() -> None:
    digests, history = PromptDigests(), user_part("The debate so far: it is long.")
    first, second = (Task(Work(), (history, user_part(each))) for each in ("Criticize A.", "Criticize B."))

    def find_rest(agent: Agent, task: Task, documents: Mapping[str, str] = DOCUMENTS) -> Sequence[PromptPart]:
        return digests.find_start(agent, task, documents).find_rest(task)

    assert find_rest(ADA, first) == first.prompt
    digests.digest(digests.find_start(ADA, first, DOCUMENTS), first, None, 30.0)
    assert find_rest(ADA, second) == second.prompt[1:]
    assert find_rest(BO, second) == second.prompt, "what it is comes first"
    assert find_rest(ADA, second, {"a.md": "0th3r"}) == second.prompt, "it may be another text"
