"""How many entries the lists of a request may have."""

from google.protobuf.message import Message

from parley.runtime.message_entries import MAX_ENTRIES, crowded_field
from parley.v1.agent_pb2 import TOOL_FILE_READ, Agent
from parley.v1.convergence_pb2 import EmbedResponse
from parley.v1.debate_pb2 import ContextDocument, DebateSpec, Participant
from parley.v1.gateway_pb2 import GenerateRequest
from parley.v1.orchestrator_pb2 import CreateDebateRequest


def _asked(spec: DebateSpec) -> Message:
    return CreateDebateRequest(spec=spec)


def test_the_entries_of_all_lists_count_together() -> None:
    some = [ContextDocument(path=str(n)) for n in range(MAX_ENTRIES - 2)]
    tools = Participant(agent=Agent(routes=["one"]))
    assert crowded_field(_asked(DebateSpec(context=some, agents=[tools]))) is None

    tools.agent.routes.append("one more")
    assert crowded_field(_asked(DebateSpec(context=some, agents=[tools]))) == "routes"


def test_a_map_counts_as_a_list() -> None:
    crowd = {f"label {n}": 1 for n in range(MAX_ENTRIES + 1)}
    assert crowded_field(_asked(DebateSpec(concurrency=crowd))) == "concurrency"


def test_names_of_an_enumeration_are_looked_at_too() -> None:
    many = Agent(tools=[TOOL_FILE_READ] * (MAX_ENTRIES + 1))
    assert crowded_field(GenerateRequest(agent=many)) == "tools"


def test_numbers_come_in_thousands() -> None:
    vector = [0.5] * (MAX_ENTRIES + 1)
    assert crowded_field(EmbedResponse(vector=vector)) is None
