"""Messages as JSON."""

import json

from parley.cli.terminal.message_json import message_to_json
from parley.v1 import agent_pb2
from parley.v1 import debate_pb2 as pb


def test_state_as_json_has_plain_values() -> None:
    debate = pb.Debate(id="deb-1", status=pb.DEBATE_STATUS_COMPLETED, last_sequence=9)
    debate.spec.agents.add().agent.id = "ada"
    debate.spec.limits.call.FromMilliseconds(1500)
    debate.usage.CopyFrom(agent_pb2.Usage(input_tokens=5))
    debate.create_time.FromSeconds(0)
    debate.contributions.add(work=pb.Work(activity="critique"))
    debate.spec.panel.rounds = 2
    debate.spec.concurrency["proposals"] = 4
    value = json.loads(message_to_json(debate))
    assert (value["status"], value["last_sequence"]) == ("completed", 9)
    assert value["spec"]["agents"][0]["agent"]["id"] == "ada"
    assert "agent_id" not in value["spec"]["agents"][0]
    assert value["spec"]["limits"]["call"] == 1.5
    assert value["create_time"] == "1970-01-01T00:00:00Z"
    assert value["usage"] == {"input_tokens": 5, "output_tokens": 0, "cost_micros": None, "requests": 0}
    assert value["contributions"][0]["work"]["activity"] == "critique"
    assert value["spec"]["panel"]["rounds"] == 2
    assert value["spec"]["concurrency"] == {"proposals": 4}
    assert value["outcome"] is None


def test_an_outcome_is_told_with_what_its_format_says() -> None:
    debate = pb.Debate()
    debate.outcome.description = "Use one."
    debate.outcome.scores.add(agent_id="ada", score=7.5)
    debate.outcome.details.confidence = 72
    outcome = json.loads(message_to_json(debate))["outcome"]
    assert outcome["scores"] == [{"agent_id": "ada", "score": 7.5}]
    assert (outcome["description"], outcome["details"]["confidence"]) == ("Use one.", 72)


def test_a_value_that_only_a_newer_server_knows_is_its_number() -> None:
    debate = pb.Debate(status=99)  # type: ignore[arg-type]
    debate.spec.agents.add().agent.tools.extend([agent_pb2.TOOL_FILE_READ, 98])  # type: ignore[list-item]
    value = json.loads(message_to_json(debate))
    assert value["status"] == 99
    assert value["spec"]["agents"][0]["agent"]["tools"] == ["file_read", 98]
