"""Change and read a running server from another process: POST /control and GET /ledger."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from tests.support.model_server.handling import Handling
from tests.support.model_server.latency import Latency
from tests.support.model_server.rules import RuleBook, rule_from_json
from tests.support.model_server.settings import Switches

HANDLING = web.AppKey("handling", Handling)
_SWITCHES = TypeAdapter(Switches)
_LATENCY = TypeAdapter(Latency)
_CHANGE = TypeAdapter(dict[str, Any])
_SWITCH_NAMES = frozenset(field.name for field in fields(Switches))


def apply(handling: Handling, change: Mapping[str, Any]) -> None:
    """Change a server: `rules` (all of them anew), `latency`, `answer`, any field of `Switches`, and `reset`: true.

    All or nothing. Raises ValueError that names what is wrong.
    """
    known = _SWITCH_NAMES | {"rules", "latency", "answer", "reset"}
    if unknown := set(change) - known:
        raise ValueError(f"unknown field {min(unknown)!r}; known are {', '.join(sorted(known))}")
    rules = [rule_from_json(item) for item in change.get("rules", ())]
    try:
        latency = _LATENCY.validate_python(change.get("latency", {}))
        switched = _SWITCHES.validate_json(
            json.dumps({k: v for k, v in change.items() if k in _SWITCH_NAMES})
        )
    except ValidationError as problem:
        first = problem.errors()[0]
        raise ValueError(f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}") from problem
    new = {name: getattr(switched, name) for name in change if name in _SWITCH_NAMES}
    handling.switches = replace(handling.switches, **new)
    if "rules" in change:
        handling.rule_book = RuleBook(rules)
    if "latency" in change:
        handling.latency = latency
    if "answer" in change:
        handling.answer = change["answer"]
    if change.get("reset"):
        handling.reset()


async def control(request: web.Request) -> web.Response:
    """Apply the change in the body; 400 with one line if it is none."""
    try:
        apply(request.app[HANDLING], _CHANGE.validate_json(await request.read()))
    except ValueError as problem:
        return web.Response(status=400, text=f"{problem}\n")
    return web.json_response({"ok": True})


async def show_ledger(request: web.Request) -> web.Response:
    """Return the calls that ended, and how many are in flight now and were at most."""
    ledger = request.app[HANDLING].ledger
    return web.json_response(
        {
            "calls": [record.to_json() for record in ledger.calls],
            "in_flight": ledger.in_flight,
            "max_in_flight": ledger.max_in_flight,
        }
    )
