"""A moderator for the model server: it asks a user nothing, takes given perspectives, and lets every round be held."""

import json
from typing import Any, Final

_PERSPECTIVES: Final = ("Performance Advocate", "Simplicity Advocate", "Security Advocate")
_PUT: Final = {
    2: "Agent A put A.1, and agent B put B.1; both are open.",
    3: "Agent A put A.1, agent B put B.1 and agent C put C.1; all are open.",
}


def moderator_rules(debaters: int) -> list[dict[str, Any]]:
    """Return the rules (see `model_server.rules`) of a moderator of two or three debaters."""
    answers = {
        "Analyse the question before anybody debates it": {
            "topic": "Sessions",
            "domain": "data",
            "constraints": [],
            "kind": "open",
            "binary": debaters == 2,
            "debaters": debaters,
            "perspectives": _PERSPECTIVES[:debaters],
            "assumptions": [],
            "opening": "Where are sessions to be kept?",
        },
        "is over. Evaluate it.": {
            "summary": _PUT[debaters],
            "open": "Which of them matters most?",
            "off_topic": [],
            "reason": "nothing is settled",
            "decision": "go_on",
            "agent": "",
            "question": "",
        },
    }
    return [{"match": {"prompt": told}, "answer": json.dumps(answer)} for told, answer in answers.items()]
