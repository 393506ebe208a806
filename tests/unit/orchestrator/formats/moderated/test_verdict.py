"""Who disagrees with what a moderated debate decided: whom the moderator names, and who takes another position in the end."""

from parley.orchestrator.api.verdict import verdict_lines
from parley.orchestrator.formats.moderated import V1
from parley.v1.agent_pb2 import Agent
from parley.v1.debate_pb2 import Debate, DebateSpec, Outcome, Participant
from parley.v1.effect_pb2 import DebateEffect, TakenPosition
from parley.v1.moderated_pb2 import CONFIDENCE_LOW, ModeratedOutcome
from parley.v1.panel_pb2 import Objection


def test_who_takes_another_position_is_named_next_to_whom_the_moderator_names() -> None:
    positions = [
        TakenPosition(text="Red.", last_agent_ids=["ada"]),
        TakenPosition(text="Blue.", last_agent_ids=["bo", "cy"]),
    ]
    debate = Debate(
        spec=DebateSpec(
            agents=[Participant(agent=Agent(id=each, name=each.title())) for each in ("ada", "bo", "cy")]
        ),
        outcome=Outcome(
            description="Red.",
            moderated=ModeratedOutcome(
                recommendation="Red.", dissents=[Objection(agent_id="bo", text="Agent C is right: it fades.")]
            ),
            effect=DebateEffect(positions=positions, decided_position=1),
        ),
    )
    lines = [each for each in verdict_lines(debate, V1) if each.startswith("**Dissent:**")]
    assert lines == [
        "**Dissent:** bo disagrees: Cy is right: it fades.",
        "**Dissent:** Cy still prefers “Blue”.",
    ]


def test_a_moderator_that_only_leaves_out_how_sure_it_is_has_said_that_nobody_disagrees() -> None:
    decision = ModeratedOutcome(recommendation="Red.", confidence=CONFIDENCE_LOW, caveats=["It fades."])
    lines = verdict_lines(Debate(outcome=Outcome(moderated=decision, effect=DebateEffect())), V1)
    assert lines[1:] == [
        "**Confidence:** Low, since the moderator did not say how sure it is.",
        "**Dissent:** No perspective strongly disagrees.",
    ]
