"""A right request of every RPC, so that what is made of it comes past the first check.

A request that has only fields of `_USUAL` is made from these. Any other stands in `_SPECIAL`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from parley.v1 import (
    agent_pb2,
    audit_pb2,
    convergence_pb2,
    debate_pb2,
    gateway_pb2,
    hook_pb2,
    key_pb2,
    link_pb2,
    memory_pb2,
    orchestrator_pb2,
    ratings_pb2,
    receipt_pb2,
)
from parley.v1.access_pb2 import ACCESS_ROLE_READ
from tests.support.access import methods
from tests.support.receipts import ring, signed_debate

__all__ = ["DEBATE", "RIGHT_REQUESTS"]

DEBATE: Final = "deb-20260101-000000-aaaaaaaa"
"""Stands for a debate that is there."""

_USUAL: Final[Mapping[str, Any]] = {
    "debate_id": DEBATE,
    "request_id": "fuzz",
    "page_size": 3,
    "page_token": "",
    "page_bytes": 1_000_000,
    "after_sequence": 1,
    "view": orchestrator_pb2.DEBATE_VIEW_FULL,
}
"""A right value of each field that means the same in every request."""

_HOOK: Final = "hook-0123456789ab"
_POSITIONS = [
    convergence_pb2.AgentPosition(
        agent_id="one", position="Keep one service.", text="One is enough for four people."
    ),
    convergence_pb2.AgentPosition(
        agent_id="two", position="Split it in five.", text="Five teams need five services."
    ),
]
_RESULTS = [
    ratings_pb2.MatchResult(agent_id="one", score=7),
    ratings_pb2.MatchResult(agent_id="two", score=3),
]
_AGENT = agent_pb2.Agent(id="ada", name="Ada", role="architect")
_SPEC = debate_pb2.DebateSpec(
    question="One service or several?",
    agents=[
        debate_pb2.Participant(agent_id="architect"),
        debate_pb2.Participant(agent_id="performance"),
    ],
    limits=debate_pb2.DebateLimits(),
    context=[debate_pb2.ContextDocument(path="notes.md", text="Four people.")],
    labels={"team": "payments"},
)
_SPECIAL: Sequence[Message] = (
    orchestrator_pb2.CreateDebateRequest(request_id="fuzz", spec=_SPEC),
    orchestrator_pb2.GetDebateRequest(debate_id=DEBATE, view=orchestrator_pb2.DEBATE_VIEW_SUMMARY),
    orchestrator_pb2.ListDebatesRequest(
        page_size=3, format="panel", order_by="create_time", created_from=Timestamp(seconds=1_780_000_000)
    ),
    orchestrator_pb2.ListDebatesRequest(page_size=3, labels={"team": "payments", "stage": "draft"}),
    key_pb2.CreateKeyRequest(request_id="fuzz", name="ci", roles=[ACCESS_ROLE_READ]),
    key_pb2.RevokeKeyRequest(key_id="0123456789ab"),
    hook_pb2.CreateHookRequest(
        request_id="fuzz",
        name="ci",
        target=hook_pb2.HookTarget(webhook=hook_pb2.WebhookTarget(url="https://hooks.example/parley")),
        events=[hook_pb2.HOOK_EVENT_CONCLUDED],
    ),
    hook_pb2.DeleteHookRequest(hook_id=_HOOK),
    hook_pb2.RotateHookSecretRequest(request_id="fuzz", hook_id=_HOOK),
    hook_pb2.TestHookRequest(hook_id=_HOOK),
    hook_pb2.ListDeliveriesRequest(page_size=3, hook_id=_HOOK, state=hook_pb2.DELIVERY_STATE_DEAD),
    hook_pb2.ResendDeliveryRequest(delivery_id=f"dlv-{'0' * 32}"),
    orchestrator_pb2.WatchDebateRequest(debate_id=DEBATE, after_sequence=1),
    orchestrator_pb2.InterveneRequest(
        request_id="fuzz",
        debate_id=DEBATE,
        intervention=debate_pb2.Intervention(guide=debate_pb2.Guide(text="Be short.")),
    ),
    orchestrator_pb2.SubmitFeedbackRequest(request_id="fuzz", debate_id=DEBATE, value=1, message="Good."),
    gateway_pb2.GenerateRequest(
        call_id=gateway_pb2.CallId(
            tenant="default", debate_id=DEBATE, step="round/1/propose/ada", step_attempt=1
        ),
        agent=_AGENT,
        prompt=[gateway_pb2.PromptPart(role=gateway_pb2.PROMPT_ROLE_USER, text="Say something.")],
    ),
    gateway_pb2.GenerateRequest(
        agent=_AGENT,
        prompt=[
            gateway_pb2.PromptPart(
                role=gateway_pb2.PROMPT_ROLE_USER, text="Say something.", shrink_priority=1
            )
        ],
        schema=gateway_pb2.AnswerSchema(name="position", json_schema='{"type": "object"}'),
    ),
    gateway_pb2.CancelCallRequest(
        call_id=gateway_pb2.CallId(
            tenant="default", debate_id=DEBATE, step="round/1/propose/ada", step_attempt=1
        )
    ),
    gateway_pb2.ListRoutesRequest(names=["fast"]),
    gateway_pb2.GetAgentRequest(agent_id="architect"),
    convergence_pb2.EmbedRequest(text="One service is enough.", model=convergence_pb2.EMBEDDING_MODEL_FAST),
    convergence_pb2.AssessRequest(question="One or several?", positions=_POSITIONS, previous=_POSITIONS),
    convergence_pb2.GroupPositionsRequest(question="One or several?", positions=_POSITIONS),
    convergence_pb2.ComparePositionsRequest(
        pairs=[convergence_pb2.PositionPair(position="Keep one service.", other_position="Split it in five.")]
    ),
    convergence_pb2.FindSupportRequest(claims=["One is enough."], texts=["One service is enough for us."]),
    ratings_pb2.RecordMatchRequest(
        debate_id=DEBATE,
        domain="general",
        results=_RESULTS,
        answers=[ratings_pb2.JudgedAnswer(agent_id="one", right=True, confidence=0.7)],
        phases=[ratings_pb2.PhaseResult(agent_id="one", phase="propose", score=8)],
        encounters=[ratings_pb2.Encounter(agent_id="one", other_agent_id="two", agreements=1)],
    ),
    ratings_pb2.CorrectMatchRequest(debate_id=DEBATE, number=1, results=_RESULTS, reason="It was wrong."),
    memory_pb2.RateDebateRequest(debate_id=DEBATE, number=1, value=1),
    ratings_pb2.RecordFeedbackRequest(debate_id=DEBATE, number=1, value=1, agent_ids=["one"]),
    ratings_pb2.GetWeightsRequest(agent_ids=["one", "two"], domain="general"),
    ratings_pb2.SelectTeamRequest(debate_id=DEBATE, candidate_agent_ids=["one", "two"], size=1),
    memory_pb2.ListPositionsRequest(agent_id="one", only_flips=True, page_size=3),
    ratings_pb2.ListRatingsRequest(domain="general", page_size=3, min_matches=1),
    ratings_pb2.ListMatchesRequest(agent_id="one", domain="general", page_size=3),
    ratings_pb2.GetPersonaRequest(agent_id="one"),
    ratings_pb2.ListRelationshipsRequest(agent_id="one", page_size=3),
    memory_pb2.ListMomentsRequest(kind=memory_pb2.MOMENT_KIND_REVERSAL, page_size=3),
    memory_pb2.RecallRequest(text="One service or several?", limit=2),
    memory_pb2.RecordDebateRequest(
        debate=memory_pb2.PastDebate(
            debate_id=DEBATE,
            question="One service or several?",
            conclusion="One.",
            concluded_at=Timestamp(seconds=1_780_000_000),
        )
    ),
    memory_pb2.ForgetDebateRequest(debate_id=DEBATE),
    orchestrator_pb2.SearchMemoryRequest(text="One service or several?", limit=2, domain="general"),
    memory_pb2.ListPatternsRequest(text="One service or several?", domain="code", page_size=3),
    receipt_pb2.ImportDebateRequest(
        receipt=signed_debate().receipt, keys=ring().keys, log=signed_debate().log_file
    ),
    audit_pb2.ListAuditEntriesRequest(page_size=3, subject="ann", acts=[audit_pb2.AUDIT_ACT_CREATE_DEBATE]),
    link_pb2.GetLinkRequest(token="link_AAAA"),
    link_pb2.UseLinkRequest(token="link_AAAA"),
    # Of another debate, since the others ask about this one.
    orchestrator_pb2.DeleteDebateRequest(debate_id="deb-20260101-000000-bbbbbbbb", ratings=True),
)


def _right_requests(methods: Sequence[MethodDescriptor]) -> Mapping[str, Sequence[Message]]:
    found: dict[str, list[Message]] = {}
    for each in _SPECIAL:
        found.setdefault(each.DESCRIPTOR.name, []).append(each)
    for method in methods:
        fields = set(method.input_type.fields_by_name)
        if fields <= _USUAL.keys():
            usual = GetMessageClass(method.input_type)(**{name: _USUAL[name] for name in fields})
            found.setdefault(method.input_type.name, []).append(usual)
    return found


RIGHT_REQUESTS: Final = _right_requests(methods())
"""By the name of their message."""
