"""What `--verbose` tells after a debate."""

from parley.cli.verbose import account
from parley.client import Debate
from parley.v1.agent_pb2 import Agent, ToolCall
from parley.v1.orchestrator_pb2 import (
    CONTRIBUTION_KIND_PROPOSAL,
    Contribution,
    DebateSpec,
    DraftGroup,
    FirstDraftVote,
    Participant,
)


def proposal(agent: str, number: int) -> Contribution:
    return Contribution(agent_id=agent, kind=CONTRIBUTION_KIND_PROPOSAL, round=number, text="One will do.")


def debate(*groups: tuple[list[str], str], majority: bool = False) -> Debate:
    vote = FirstDraftVote(
        groups=[DraftGroup(agent_ids=agents, position=position) for agents, position in groups],
        majority=majority,
    )
    return Debate(
        spec=DebateSpec(
            agents=[Participant(agent=Agent(id="ada"))], judge=Participant(agent=Agent(id="judge"))
        ),
        contributions=[proposal("ada", 1), proposal("ada", 2)],
        first_draft_vote=vote if groups else None,
        recalled_debate_ids=["deb-20260101-000000-abcdefgh"],
    )


def told(state: Debate) -> str:
    return "\n".join(account(state))


def test_the_vote_over_the_first_drafts_stands_with_the_first_round() -> None:
    text = told(debate((["ada", "cy"], "Keep one."), (["bo"], ""), majority=True))
    assert (
        "  vote over the first drafts: 2 of 3 agree\n    ada, cy: Keep one.\n    bo: no position stated\nRound 2"
    ) in text


def test_a_vote_without_a_majority_says_so() -> None:
    text = told(debate((["ada"], "Keep one."), (["bo"], "Split it.")))
    assert "  vote over the first drafts: no majority\n    ada: Keep one.\n    bo: Split it.\n" in text


def test_without_a_vote_nothing_is_said_of_one() -> None:
    assert "vote" not in told(debate())


def test_past_debates_that_were_shown_are_named_before_the_rounds() -> None:
    assert "Past debates shown\n  deb-20260101-000000-abcdefgh\nRound 1\n" in told(debate())


def test_what_an_agent_looked_up_stands_below_its_contribution_tool_by_tool() -> None:
    state = debate()
    calls = [("file_read", False), ("list_files", False), ("file_read", False), ("file_read", True)]
    state.contributions[0].tool_calls.extend(ToolCall(name=name, failed=failed) for name, failed in calls)
    assert "    looked up: file_read ×2, list_files, file_read (failed)\nRound 2\n" in told(state)  # noqa: RUF001


def test_nothing_is_said_of_tools_that_nobody_used() -> None:
    assert "looked up" not in told(debate())
