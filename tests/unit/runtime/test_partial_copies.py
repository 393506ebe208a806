from parley.runtime.partial_copies import copy_without
from parley.v1.debate_pb2 import DebateSpec
from tests.support.orchestration import with_fields


def test_a_copy_has_all_but_one_field() -> None:
    spec = DebateSpec(question="Why?", labels={"team": "otters"}, history_limit=0)
    spec.agents.add().agent.id = "ada"
    spec.context.add(path="a.md", text="words")
    spec.panel.SetInParent()
    spec.limits.call.seconds = 5
    assert copy_without(spec, "context") == with_fields(spec, context=[])
    assert copy_without(spec, "labels") == with_fields(spec, labels={})
    bare = copy_without(spec, "context")
    assert bare.HasField("panel")
    assert bare.HasField("history_limit")
