"""Answers of agents and of a judge that a script says."""

import json


def answer_text(step: str, agent: str) -> str:
    return f"{agent} answers {step}.\nPosition: {agent} stands by {step}"


def judgement(schema: str, **fields: object) -> str:
    """An answer of the shape that the judge is asked for: the first agent gets 1, the next 2, and so on."""
    asked = json.loads(schema)["properties"]
    scores = asked.get("scores", {}).get("required", ())
    positions = asked.get("positions", {}).get("properties", {}).get("cannot_be_told", {})
    names = positions.get("items", {}).get("enum", ())
    earlier = asked.get("earlier_decisions", {}).get("maxItems", 0)
    answer = {
        "description": "The answer.",
        "implementation": "Do it.",
        "tradeoffs": ["time for money"],
        "recommendations": ["begin"],
        "unfulfilled_requirements": [],
        "requirements_met": dict.fromkeys(asked.get("requirements_met", {}).get("required", ()), True),
        "open_questions": ["when?"],
        "confidence": 80,
        "scores": {each: float(1 + place % 9) for place, each in enumerate(scores)},
        "earlier_decisions": [
            {"number": number, "relation": "other matter", "reason": "of another team"}
            for number in range(1, earlier + 1)
        ],
        "positions": {"groups": [[each] for each in names], "cannot_be_told": [], "answer": "none"},
    }
    return json.dumps({**{name: answer[name] for name in asked}, **fields})


def criticism(text: str) -> str:
    """A critique of one issue, which is this text."""
    issue = {"issue": text, "severity": 5, "suggestion": "Mend it."}
    return json.dumps({"issues": [issue], "agrees": False, "remarks": ""})
