"""What a model that plays along says that an answer rests on."""

import json
from typing import Any


def asks_for_grounds(schema: Any) -> bool:
    """Return whether the answer to this schema says what an answer rests on."""
    return isinstance(schema, dict) and {"claims", "verdict"} <= schema.get("properties", {}).keys()


def grounds(schema: str, **fields: object) -> str:
    """What the answer rests on: two claims, of which the second is a reason for the first, and a third that nobody has made."""
    asked = json.loads(schema)["properties"]["claims"]["items"]["properties"]
    contribution = next((each for each in asked["for"]["items"]["enum"] if each != "Q"), "Q")
    answer = {
        "claims": [
            {"claim": "Water is wet.", "for": [], "against": [], "score": 50},
            {"claim": "It sticks to what it touches.", "for": [contribution], "against": [], "score": 90},
            {"claim": "It has 12 colours.", "for": [], "against": [], "score": 0},
        ],
        "relations": [{"reason": 2, "claim": 1, "kind": "for", "strength": "strong"}],
        "verdict": 1,
    }
    return json.dumps({**answer, **fields})
