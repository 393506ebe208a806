"""The answer by vote and by merge: what is asked of whom, what is recorded, and what people see."""

import json
import re
from pathlib import Path

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import Concluded
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_MERGE, SYNTHESIS_METHOD_VOTING
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE, VOTE_STRENGTH_SPLIT, VOTE_STRENGTH_UNANIMOUS
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, backstage, check_log, make_debate, until
from tests.support.scripted_gateway import ScriptedGateway, refusal


class Voters(ScriptedGateway):
    """Agents that vote for the proposal of whom they are told to, wherever it stands, and object as they are told to."""

    def __init__(self, choices: dict[str, str], objections: dict[str, str] | None = None) -> None:
        super().__init__()
        self.choices = choices
        self.objections = objections or {}
        self.judge = self._structured

    def _structured(self, schema: str) -> str:
        asked = self.calls[-1]
        agent = asked.agent.id
        if "choice" in json.loads(schema)["properties"]:
            shown = re.findall(r"Proposal (\d+) \(quotation.*?\n<<<\n(\w+) answers", asked.prompt, re.DOTALL)
            (number,) = (int(number) for number, author in shown if author == self.choices[agent])
            sure = 0.9 if agent == "bo" else 0.5
            return json.dumps({"choice": number, "confidence": sure, "reason": f"{agent} says so"})
        objection = self.objections.get(agent, "")
        return json.dumps({"objects": bool(objection), "objection": objection})


def outcome(events: list[Envelope]) -> Outcome:
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    return concluded.outcome


async def voted(folder: Path, gateway: Voters, agents: int = 3) -> tuple[Backstage, list[Envelope]]:
    async with backstage(folder, gateway) as stage, stage.replica() as replica:
        spec = make_debate(agents, 1, synthesis_method=SYNTHESIS_METHOD_VOTING)
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    return stage, events


async def test_the_proposal_that_wins_the_vote_is_the_answer(tmp_path: Path) -> None:
    gateway = Voters({"ada": "bo", "bo": "bo", "cy": "ada"})
    stage, events = await voted(tmp_path, gateway)
    came_to = outcome(events)
    vote = came_to.panel.vote
    assert came_to.description.startswith("bo answers round/1/refine/bo")
    assert (vote.winner_agent_id, came_to.panel.synthesized_by) == ("bo", "bo")
    assert vote.strength == VOTE_STRENGTH_MODERATE
    assert {each.agent_id: each.votes for each in vote.options} == {"bo": 2, "ada": 1, "cy": 0}
    assert [(each.agent_id, each.choice_agent_id) for each in vote.ballots] == [
        ("ada", "bo"),
        ("bo", "bo"),
        ("cy", "ada"),
    ]
    assert not stage.gateway.steps("synthesis*"), "no judge is asked"
    assert not came_to.HasField("details")
    text = answer_markdown(fold(events), V1)
    assert "## Vote\n\n- Bo has won (moderate)\n" in text
    assert "Confidence" not in text
    report = render_report(fold(events), V1)
    assert "### Vote: Ada (ada)" in report
    assert "50% sure: ada says so" in report


async def test_proposals_are_shown_without_names_and_in_an_order_of_each_voter(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "ada"})
    stage, _ = await voted(tmp_path, gateway)
    orders = set()
    for agent in ("ada", "bo", "cy"):
        prompt = stage.gateway.asked(f"vote/{agent}").prompt
        assert "agent A" not in prompt
        orders.add(tuple(re.findall(r"<<<\n(\w+) answers", prompt)))
    assert all(sorted(order) == ["ada", "bo", "cy"] for order in orders)


async def test_a_tie_is_told_and_the_surest_voters_decide(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "bo"})
    _, events = await voted(tmp_path, gateway, agents=2)
    vote = outcome(events).panel.vote
    assert (vote.winner_agent_id, list(vote.tied_agent_ids)) == ("", ["ada", "bo"])
    assert vote.strength == VOTE_STRENGTH_SPLIT
    assert outcome(events).description.startswith("bo answers")
    assert "Ada and Bo are tied; the surest voters decided" in answer_markdown(fold(events), V1)


async def test_a_voter_that_fails_abstains_and_no_vote_is_made_up(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "cy"})
    gateway.fail("vote/cy")
    _, events = await voted(tmp_path, gateway)
    vote = outcome(events).panel.vote
    assert list(vote.abstained_agent_ids) == ["cy"]
    assert vote.strength == VOTE_STRENGTH_UNANIMOUS
    assert len(vote.ballots) == 2


async def test_a_vote_without_a_quorum_fails_and_is_held_again_when_the_debate_is_resumed(
    tmp_path: Path,
) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "ada"})
    gateway.fail("vote/bo", refusal(), attempt=1)
    gateway.fail("vote/cy", refusal(), attempt=1)
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(make_debate(3, 1, synthesis_method=SYNTHESIS_METHOD_VOTING))
        failed = fold(await stage.comes_to(debate, "FAILED")).failure
        assert failed is not None
        assert (failed.reason, failed.phase, failed.agent_id) == ("PROVIDER_AUTH", "vote", "bo")
        await replica.intervene(debate, "resume")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert outcome(events).panel.vote.winner_agent_id == "ada"
    assert stage.gateway.steps("vote/ada") == ["vote/ada"], "who has voted is not asked again"


async def test_voters_whose_provider_may_come_back_are_asked_again_and_then_waited_for(
    tmp_path: Path,
) -> None:
    gateway, clock = Voters({"ada": "ada", "bo": "ada"}), ManualClock()
    gateway.fail("vote/bo", refusal("PROVIDER_UNAVAILABLE"), times=2)

    async def asked(times: int) -> bool:
        if len(gateway.steps("vote/bo")) >= times:
            return True
        clock.advance(5)
        return False

    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_VOTING))
        await gateway.wait_for("vote/bo")
        await until(lambda: asked(2), "bo is asked again")
        await stage.has(debate, "wait_started")
        await until(lambda: asked(3), "bo is waited for and asked once more")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert gateway.steps("vote/bo") == ["vote/bo"] * 3
    assert outcome(events).panel.vote.strength == VOTE_STRENGTH_UNANIMOUS


async def test_a_merged_answer_has_the_objections_of_the_others_attached(tmp_path: Path) -> None:
    gateway = Voters({}, {"bo": "It forgets the cost."})
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        spec = make_debate(3, 1, synthesis_method=SYNTHESIS_METHOD_MERGE)
        events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    came_to = outcome(events)
    assert came_to.description.startswith("judge answers merge")
    assert [(each.agent_id, each.text) for each in came_to.panel.objections] == [
        ("bo", "It forgets the cost.")
    ]
    prompt = stage.gateway.asked("merge").prompt
    assert all(f"{agent} answers round/1/refine/{agent}" in prompt for agent in ("ada", "bo", "cy"))
    assert "judge answers merge" in stage.gateway.asked("merge/objection/cy").prompt
    assert not came_to.scores
    assert "## Objections\n\n- Bo: It forgets the cost.\n" in answer_markdown(fold(events), V1)


async def test_a_judge_that_does_not_merge_fails_the_debate_which_may_be_resumed(tmp_path: Path) -> None:
    gateway = Voters({})
    gateway.fail("merge", refusal(), attempt=1)
    async with backstage(tmp_path, gateway) as stage, stage.replica() as replica:
        debate = await replica.create(make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_MERGE))
        await stage.comes_to(debate, "FAILED")
        await replica.intervene(debate, "resume")
        events = await stage.comes_to(debate, "COMPLETED")
    assert outcome(events).description.startswith("judge answers merge")
