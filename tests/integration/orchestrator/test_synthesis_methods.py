"""The answer by vote and by merge: what is asked of whom, what is recorded, and what people see."""

import json
import re
from pathlib import Path

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.log.envelope import Envelope
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_MERGE, SYNTHESIS_METHOD_VOTING
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE, VOTE_STRENGTH_SPLIT, VOTE_STRENGTH_UNANIMOUS
from tests.support.debate_logs import check_log, outcome_of, run_debate
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import backstage, make_debate, until
from tests.support.scripted_answers import criticism
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway


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


async def run_voting(folder: Path, gateway: Voters, agents: int = 3) -> list[Envelope]:
    spec = make_debate(agents, 1, synthesis_method=SYNTHESIS_METHOD_VOTING)
    return await run_debate(folder, gateway, spec)


async def test_the_proposal_that_wins_the_vote_is_the_answer(tmp_path: Path) -> None:
    gateway = Voters({"ada": "bo", "bo": "bo", "cy": "ada"})
    events = await run_voting(tmp_path, gateway)
    came_to = outcome_of(events)
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
    assert not gateway.steps("synthesis*"), "no judge is asked"
    assert not came_to.HasField("details")
    text = answer_markdown(fold(events), V1)
    assert "## Vote\n\n- Bo has won (moderate)\n" in text

    assert "Two of three votes went to the proposal of Bo (moderate).\n" in text
    assert "Those who voted for it are 50 to 90 % sure, by their own word.\n" in text
    assert "- **Dissent:** Cy voted for the proposal of Ada: cy says so." in text
    report = render_report(fold(events), V1)
    assert "### Vote: Ada" in report
    assert "Proposal of Bo, 50% sure: ada says so" in report


async def test_all_proposals_are_shown_to_each_voter_and_without_names(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "ada"})
    await run_voting(tmp_path, gateway)
    orders = set()
    for agent in ("ada", "bo", "cy"):
        prompt = gateway.asked(f"vote/{agent}").prompt
        assert "agent A" not in prompt
        orders.add(tuple(re.findall(r"<<<\n(\w+) answers", prompt)))
    assert all(sorted(order) == ["ada", "bo", "cy"] for order in orders)


async def test_a_tie_is_told_and_the_surest_voters_decide(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "bo"})
    events = await run_voting(tmp_path, gateway, agents=2)
    vote = outcome_of(events).panel.vote
    assert (vote.winner_agent_id, list(vote.tied_agent_ids)) == ("", ["ada", "bo"])
    assert vote.strength == VOTE_STRENGTH_SPLIT
    assert outcome_of(events).description.startswith("bo answers")
    said = answer_markdown(fold(events), V1)
    assert "between Ada and Bo: the proposal of Bo stands, since its voters were the surest." in said
    assert "For it: one of two votes. No probability is computed: " in said
    votes = [each for each in fold(events).contributions if each.work.activity == "vote"]
    assert [each.is_answer for each in votes] == [False, False], "a ballot is not the answer"


async def test_a_voter_that_fails_abstains_and_no_vote_is_made_up(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "cy"})
    gateway.fail("vote/cy")
    events = await run_voting(tmp_path, gateway)
    vote = outcome_of(events).panel.vote
    assert list(vote.abstained_agent_ids) == ["cy"]
    assert vote.strength == VOTE_STRENGTH_UNANIMOUS
    assert len(vote.ballots) == 2


async def test_where_too_few_vote_the_work_that_most_critics_agree_with_stands_in(tmp_path: Path) -> None:
    gateway = Voters({"ada": "ada", "bo": "ada", "cy": "ada"})
    agreeing = {"issues": [], "agrees": True, "remarks": ""}
    gateway.critic = lambda step, agent: json.dumps(agreeing) if step.endswith("/of/bo") else criticism(agent)
    gateway.fail("vote/bo")
    gateway.fail("vote/cy")
    events = await run_voting(tmp_path, gateway)
    came_to = outcome_of(events)
    assert came_to.description.startswith("bo answers round/1/refine/bo")
    made = came_to.stand_in
    assert (made.agent_id, made.writer_agent_id, made.reason) == ("bo", "", "BAD_REQUEST")
    assert made.choice == "2 of 2 critics agree with it"
    line = "Stand-in: no answer was made (the provider said no): the last work of Bo stands in for it, since 2 of 2"
    assert answer_markdown(fold(events), V1).startswith(f"*{line}")
    assert line in render_report(fold(events), V1)


async def test_voters_whose_provider_may_come_back_are_asked_again_and_then_waited_for(
    tmp_path: Path,
) -> None:
    gateway, clock = Voters({"ada": "ada", "bo": "ada"}), ManualClock()
    gateway.fail("vote/bo", refusal("PROVIDER_UNAVAILABLE"), times=2)

    async def is_asked(times: int) -> bool:
        if len(gateway.steps("vote/bo")) >= times:
            return True
        clock.advance(5)
        return False

    async with backstage(tmp_path, gateway) as stage, stage.replica(clock=clock) as replica:
        debate = await replica.create(make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_VOTING))
        await gateway.wait_for("vote/bo")
        await until(lambda: is_asked(2), "bo is asked again")
        await stage.has(debate, "wait_started")
        await until(lambda: is_asked(3), "bo is waited for and asked once more")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert gateway.steps("vote/bo") == ["vote/bo"] * 3
    assert outcome_of(events).panel.vote.strength == VOTE_STRENGTH_UNANIMOUS


async def test_a_merged_answer_has_the_objections_of_the_others_attached(tmp_path: Path) -> None:
    gateway = Voters({}, {"bo": "It forgets the cost."})
    events = await run_debate(tmp_path, gateway, make_debate(3, 1, synthesis_method=SYNTHESIS_METHOD_MERGE))
    came_to = outcome_of(events)
    assert came_to.description.startswith("judge answers merge")
    assert [(each.agent_id, each.text) for each in came_to.panel.objections] == [
        ("bo", "It forgets the cost.")
    ]
    prompt = gateway.asked("merge").prompt
    assert all(f"{agent} answers round/1/refine/{agent}" in prompt for agent in ("ada", "bo", "cy"))
    assert "judge answers merge" in gateway.asked("merge/objection/cy").prompt
    assert not came_to.scores
    shown = answer_markdown(fold(events), V1)
    assert "- **Dissent:** Bo objects: It forgets the cost.\n" in shown
    assert shown.count("It forgets the cost.") == 1, "it is told once"


async def test_a_work_stands_in_for_a_merge_that_a_judge_does_not_write(tmp_path: Path) -> None:
    gateway = Voters({})
    gateway.fail("merge")
    events = await run_debate(tmp_path, gateway, make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_MERGE))
    came_to = outcome_of(events)
    assert came_to.description.startswith("ada answers round/1/refine/ada")
    assert (came_to.stand_in.agent_id, came_to.stand_in.writer_agent_id) == ("ada", "judge")
    assert not gateway.steps("merge/objection/*"), "no answer was written to object to"


async def test_a_merge_that_says_nothing_is_asked_for_once_more(tmp_path: Path) -> None:
    gateway = Voters({})
    answer = gateway.text
    gateway.text = lambda step, agent: "🤷" if step == "merge" else answer(step, agent)
    events = await run_debate(tmp_path, gateway, make_debate(2, 1, synthesis_method=SYNTHESIS_METHOD_MERGE))
    assert outcome_of(events).description.startswith("judge answers merge/again")
    assert not outcome_of(events).HasField("stand_in")
    assert "the answer cannot be used: it says nothing in words" in gateway.asked("merge/again").prompt
    (failed,) = fold(events).failures
    assert (failed.reason, failed.partial_text) == ("UNUSABLE_ANSWER", "🤷")
