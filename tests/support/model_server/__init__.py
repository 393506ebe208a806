"""A model server for tests and benchmarks: real HTTP on loopback, the OpenAI API, no model.

Its answers follow from the request alone, or from rules; it can be slow, wrong or gone as told, and keeps a
ledger of every call. `python -m tests.support.model_server` runs it as a process.
"""

from tests.support.model_server.faults import (
    ErrorShape,
    Fault,
    FaultKind,
    context_overflow,
    error,
    unknown_model,
)
from tests.support.model_server.latency import BENCH_KEY_HEADER, Latency
from tests.support.model_server.ledger import Ledger, Outcome, Record, most_at_once, read_ledger
from tests.support.model_server.rules import (
    ANY,
    Answer,
    Call,
    Match,
    Reasoned,
    Rule,
    ToolCall,
    ToolCalls,
    rule_from_json,
)
from tests.support.model_server.server import ModelServer
from tests.support.model_server.settings import Switches

__all__ = [
    "ANY",
    "BENCH_KEY_HEADER",
    "Answer",
    "Call",
    "ErrorShape",
    "Fault",
    "FaultKind",
    "Latency",
    "Ledger",
    "Match",
    "ModelServer",
    "Outcome",
    "Reasoned",
    "Record",
    "Rule",
    "Switches",
    "ToolCall",
    "ToolCalls",
    "context_overflow",
    "error",
    "most_at_once",
    "read_ledger",
    "rule_from_json",
    "unknown_model",
]
