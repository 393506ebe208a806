"""Protocols: what agents are asked to do in each phase, besides what their roles say.

A role says what an agent knows and looks at; a protocol says how it argues. Votes and the judge's scores are not
touched by it: whatever the manner of a debate, its work is counted alike.
"""

from collections.abc import Mapping
from typing import Final

from parley.orchestrator.engine.debate import Debate
from parley.v1.arena_pb2 import (
    DEBATE_PROTOCOL_ADVERSARIAL,
    DEBATE_PROTOCOL_COLLABORATIVE,
    DEBATE_PROTOCOL_SOCRATIC,
)

PROTOCOLS: Final[Mapping[int, Mapping[str, str]]] = {
    DEBATE_PROTOCOL_ADVERSARIAL: {
        "propose": (
            "This debate is adversarial: others will try to refute your proposal. Take a clear stand, and give the strongest"
            " reasons and evidence for it. Answer in advance the objection that you would fear most."
        ),
        "critique": (
            "This debate is adversarial: try to refute this proposal. Look for the case in which it fails, the claim without"
            " evidence, the step that does not follow. Attack the proposal at its strongest, as its author means it. What you"
            " cannot refute you grant; an objection that you do not believe yourself is worth nothing."
        ),
        "refine": (
            "This debate is adversarial: defend your proposal. Refute with reasons and evidence what is wrong in the critiques."
            " Where a critique has refuted you, say so and change the proposal; who defends what was refuted loses."
        ),
        "finish": (
            "This debate is adversarial: make the strongest honest case for your proposal, and say why other answers to the"
            " question fall short of it."
        ),
    },
    DEBATE_PROTOCOL_COLLABORATIVE: {
        "propose": (
            "This debate is collaborative: all agents look for the best answer together. Think for yourself first: what only you"
            " see is of most use to the others. Say what you are unsure of, so that they can help."
        ),
        "critique": (
            "This debate is collaborative: help the author to make this proposal better. Say of each issue how it can be mended."
            " Do not agree for the sake of peace: an error that you pass over costs all of you."
        ),
        "refine": (
            "This debate is collaborative: take over what is right in the critiques, and name what you have taken over. Keep what"
            " you have good reasons for, even if you are alone with it, and give the reasons."
        ),
        "finish": (
            "This debate is collaborative: bring together the best that was found. Where answers to the question still differ, say"
            " what the difference hangs on."
        ),
    },
    DEBATE_PROTOCOL_SOCRATIC: {
        "propose": (
            "This debate is Socratic: it advances by questions. State your proposal as a chain of reasons, each of which can be"
            " questioned by itself, and name what you take for granted."
        ),
        "critique": (
            "This debate is Socratic: criticize by asking. Put each issue as a question that the author has to answer: what does"
            " it take for granted, how does it know that, what follows from it if taken seriously, what would show that it is"
            " wrong? Ask only what could change the proposal."
        ),
        "refine": (
            "This debate is Socratic: each issue is a question to you. Answer it with reasons. Where you cannot answer it, say so,"
            " and change the proposal so that it no longer depends on the answer."
        ),
        "finish": (
            "This debate is Socratic: state your proposal with the reasons that have stood up to questions, and the questions that"
            " are still open."
        ),
    },
}
"""What agents are asked to do, by protocol and by the section of the phase."""


def with_manner(debate: Debate, section: str, task: str) -> str:
    """Return a task with how the agent is to argue in it; as it is in a format without protocols."""
    manner = PROTOCOLS.get(debate.spec.arena.protocol, {}).get(section, "")
    return f"{manner}\n\n{task}" if manner else task
