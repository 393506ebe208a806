"""Six documents as people read them, two a format: one where all went well, one where much went wrong.

`python -m tests.support.kept_documents` has the debates held anew, with texts that were written by hand, and writes the logs and
the documents that these come to. With `--render` it only writes the documents anew, from the logs that are there.
"""

import argparse
import asyncio
import base64
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from parley.orchestrator.api.decision import decision_of
from parley.orchestrator.api.folding import fold
from parley.orchestrator.api.report import render_report
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import GENESIS, Envelope, open_entry
from parley.v1 import convergence_pb2, debate_pb2
from parley.v1.debate_pb2 import Debate, Intervention
from parley.v1.event_pb2 import DebateCreated
from parley.v1.moderated_pb2 import Perspective
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_VOTING
from tests.support.arena_debates import arena_settings, arena_spec
from tests.support.example_debate import SOURCE
from tests.support.kept_debates.kept_debate import Person
from tests.support.manual_clock import ManualClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import agent, backstage, make_debate, with_spec
from tests.support.scripted_gateway import ScriptedGateway, StepRequest

FOLDER: Final = Path(__file__).parents[1] / "data" / "documents"
_JUDGE: Final = agent("judge", "judge")


async def _let_be(_person: Person) -> None:
    pass


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A document that is kept, and how the debate is held that it is of."""

    name: str
    spec: Callable[[], DebateCreated]
    gateway: Callable[[], ScriptedGateway]
    steer: Callable[[Person], Awaitable[None]] = _let_be

    @property
    def log(self) -> Path:
        """The log of the debate, its events in base64, one a line."""
        return FOLDER / f"{self.name}.log"

    @property
    def page(self) -> Path:
        """The document."""
        return FOLDER / f"{self.name}.md"


def _source(name: str) -> Mapping[str, Any]:
    path = SOURCE if name == "payments" else FOLDER / f"{name}.yaml"
    loaded: Mapping[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return loaded


class WrittenGateway(ScriptedGateway):
    """Agents that say what was written for them in a source, in the steps of a panel and of an arena."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__()
        self.source = source
        self.requirements = [(each["text"], each["hard"]) for each in source["requirements"]]
        self.text = self._text
        self.critic = self._critique
        self.judge = self._judge
        self.group_by = self._group

    @property
    def _letters(self) -> dict[str, str]:
        return {name: chr(ord("A") + place) for place, name in enumerate(self.source["agents"])}

    def _text(self, step: str, name: str) -> str:
        if "/propose/" in step:
            return str(self.source["proposals"][name]).strip()
        if "/finish/" in step:
            return str(self.source["refinements"][name]).strip()
        letters = self._letters
        answers = [
            f"- {letters.get(issue.partition('.')[0], issue[0])}.{issue.rpartition('.')[2]}: {said}"
            for issue, said in self.source["answers"][name].items()
        ]
        return "\n".join(
            [str(self.source["refinements"][name]).strip(), "", "## Answers to issues", "", *answers]
        )

    def _critique(self, step: str, critic: str) -> str:
        author = step.rpartition("/of/")[2]
        found = next(
            each for each in self.source["critiques"] if (each["by"], each["of"]) == (critic, author)
        )
        issues = [
            {"issue": each["text"], "severity": each["severity"], "suggestion": each["suggestion"]}
            for each in found["issues"]
        ]
        return json.dumps({"issues": issues, "agrees": found.get("agrees", False), "remarks": found["sound"]})

    def _judge(self, schema: str) -> str:
        asked, properties = self.calls[-1], json.loads(schema)["properties"]
        if "implementation" in properties:
            return json.dumps(self._answer(properties), ensure_ascii=False)
        if "choice" in properties:
            return json.dumps(self._ballot(asked))
        if "ranking" in properties:
            return json.dumps(self._ranking(properties))
        if "can_live_with_it" in properties:
            objection = self.source.get("objections", {}).get(asked.agent.id, "")
            return json.dumps({"can_live_with_it": not objection, "objection": objection})
        raise AssertionError(f"nothing was written for {asked.step}: {sorted(properties)}")

    def _answer(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        written, letters = dict(self.source["answer"]), self._letters
        written["scores"] = {letters[name]: score for name, score in written["scores"].items()}
        written.setdefault("requirements_met", {})
        shown = properties.get("positions", {}).get("properties", {}).get("cannot_be_told", {})
        names = shown.get("items", {}).get("enum", ())
        written["positions"] = {"groups": [[each] for each in names], "cannot_be_told": [], "answer": "none"}
        return {name: written.get(name, "") for name in properties}

    def _ballot(self, asked: StepRequest) -> Mapping[str, Any]:
        name = asked.agent.id
        wanted = str(self.source["refinements"][self.source["votes"][name]]).strip()[:60]
        shown = [part.text for part in asked.parts if part.text.startswith("Proposal ")]
        place = next((number for number, text in enumerate(shown, start=1) if wanted in text), 1)
        return {"choice": place, "confidence": 0.72, "reason": self.source["reasons"][name]}

    def _ranking(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        authors = {letter: name for name, letter in self._letters.items()}
        scores = self.source["answer"]["scores"]
        letters = properties["ranking"]["items"]["properties"]["agent"]["enum"]
        ranked = sorted(letters, key=lambda letter: -scores[authors[letter]])
        said: dict[str, Any] = {
            "ranking": [
                {
                    "agent": letter,
                    "score": scores[authors[letter]],
                    "reason": f"Agent {letter} meets what is required with the fewest open risks."
                    if place == 0
                    else f"It leaves more to be found out than the work of agent {ranked[0]}.",
                }
                for place, letter in enumerate(ranked)
            ],
            "sufficient": True,
            "missing": "",
        }
        if "position" in properties:
            said |= {"position": 0, "position_confidence": 0.5, "position_reason": "All three leave a gap."}
        return {name: said.get(name, "") for name in properties}

    def _group(
        self, request: convergence_pb2.GroupPositionsRequest
    ) -> convergence_pb2.GroupPositionsResponse:
        """Let each agent's own positions be one, and no other: two agents say the same only if the source says so."""
        alike = self.source.get("alike", {})
        groups: dict[str, list[str]] = {}
        for each in request.positions:
            words = each.position or each.text
            known = [
                (name, text)
                for part in ("proposals", "refinements")
                for name, text in self.source[part].items()
            ]
            author = next(
                (name for name, text in known if words and words in " ".join(text.split())), each.agent_id
            )
            groups.setdefault(alike.get(author, author), []).append(each.agent_id)
        return convergence_pb2.GroupPositionsResponse(
            groups=[
                convergence_pb2.PositionGroup(agent_ids=sorted(ids), representative_agent_id=min(ids))
                for ids in groups.values()
            ],
            majority=any(2 * len(ids) > len(request.positions) for ids in groups.values()),
        )


class WrittenModerator(ModeratedScript):
    """A moderator and debaters that say what was written for them in a source."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__(
            questions=source["questions"],
            debaters=len(source["perspectives"]),
            ranking=source["perspectives"],
            decisions=source["decisions"],
            summary=source["summary"],
            confidence=source["confidence"],
            tensions=source["tensions"],
        )
        object.__setattr__(self, "source", source)

    source: Mapping[str, Any]

    def _answer(self, asked: StepRequest, properties: Mapping[str, Any]) -> Mapping[str, Any] | None:  # noqa: PLR0911 - a case a kind
        said, source, name = super()._answer(asked, properties), self.source, asked.agent.id
        if said is None:
            return None
        if "points" in properties:
            return {
                **said,
                "position": source["positions"][name],
                "points": source["points"][name],
                "gives_up": source["gives_up"][name],
            }
        if "answers" in properties:
            answers = [{**each, "answer": source["rebuttal"]} for each in said["answers"]]
            return {**said, "answers": answers, "position": source["positions"][name]}
        if "opening" in properties:
            written = {each: source[each] for each in ("topic", "constraints", "assumptions", "opening")}
            return {**said, **written}
        if "off_topic" in properties:
            return {**said, "open": source["open"], "reason": source["reason"]}
        if "recommendation" in properties:
            written = {
                each: source[each]
                for each in ("topic", "recommendation", "agreements", "caveats", "dissents")
            }
            arguments = [
                {"agent": letter, "key_arguments": points}
                for letter, points in source["key_arguments"].items()
            ]
            return {**said, **written, "perspectives": arguments}
        return said


def _agents(source: Mapping[str, Any]) -> tuple[Any, ...]:
    roles = {"finance": "generalist", "product": "generalist", "operations": "generalist"}
    return tuple(agent(name, roles.get(name, name)) for name in source["agents"])


def _panel(name: str, rounds: int = 1, **fields: Any) -> DebateCreated:
    source = _source(name)
    return make_debate(
        question=source["question"], agents=_agents(source), judge=_JUDGE, rounds=rounds, **fields
    )


def _arena(name: str, **fields: Any) -> DebateCreated:
    source = _source(name)
    made = arena_spec(len(source["agents"]), arena_settings(**fields))
    return with_spec(made, question=source["question"], agents=_agents(source), judge=_JUDGE)


def _payments() -> WrittenGateway:
    source = dict(_source("payments"))
    source["votes"] = dict.fromkeys(source["agents"], "security")
    source["reasons"] = {
        "architect": "It is the only one that says which event decides what a payment has come to.",
        "performance": "Its one guarded function costs nothing in the usual case.",
        "security": "A payment is what the provider signed, and nothing else.",
    }
    source["alike"] = {"architect": "security"}
    return WrittenGateway(source)


def _make_absent(*patterns: str) -> Callable[[], WrittenGateway]:
    def gateway() -> WrittenGateway:
        made = WrittenGateway(_source("business"))
        for pattern in patterns:
            made.fail(pattern)
        return made

    return gateway


def _moderated(name: str, **fields: Any) -> DebateCreated:
    source = _source("moderated")[name]
    return moderated_spec(3, question=source["question"], checkpoints=True, max_rounds=3, **fields)


_OWN: Final = [
    Perspective(
        name="Cash First",
        priorities=["revenue", "payback time"],
        trade_offs="Will accept a second version of the product",
    ),
    Perspective(
        name="Roadmap First",
        priorities=["one product", "the release in March"],
        trade_offs="Will accept the loss of a customer",
    ),
    Perspective(
        name="Customer First",
        priorities=["what the customer is afraid of"],
        trade_offs="Will accept a slower answer",
    ),
]


def _written_moderator(name: str) -> Callable[[], ScriptedGateway]:
    return lambda: WrittenModerator(_source("moderated")[name]).gateway()


def _absent_moderator() -> ScriptedGateway:
    made = _written_moderator("hosting")()
    made.fail("round/2/argue/customer-first")
    return made


async def _approve(person: Person) -> None:
    source = _source("moderated")["sessions"]
    answers = [
        debate_pb2.QuestionAnswer(question_id=f"question-{place}", text=text)
        for place, text in enumerate(source["answers"], start=1)
    ]
    await _act(
        person,
        ("analysis/1/questions", Intervention(answer=debate_pb2.Answer(answers=answers))),
        (
            "round/1/checkpoint",
            Intervention(guide=debate_pb2.Guide(text="Assume that no third engineer joins this year.")),
        ),
        ("round/2/checkpoint", Intervention(continue_debate=debate_pb2.Continue())),
        (
            "synthesis/approval",
            Intervention(
                approve=debate_pb2.Approve(approved=True, text="Good. I book week four for the load test.")
            ),
        ),
    )


async def _refuse(person: Person) -> None:
    said = (
        "Say what it costs us.",
        "The loss of the customer is not in it.",
        "I take this to the board as it is.",
    )
    refusals = [
        (
            f"synthesis{f'/{place}' if place > 1 else ''}/approval",
            Intervention(approve=debate_pb2.Approve(text=text)),
        )
        for place, text in enumerate(said, start=1)
    ]
    going_on = [
        (f"round/{number}/checkpoint", Intervention(continue_debate=debate_pb2.Continue()))
        for number in (1, 2)
    ]
    await _act(person, *going_on, *refusals)


async def _act(person: Person, *acts: tuple[str, Intervention]) -> None:
    for place, (key, act) in enumerate(acts, start=1):
        await person.sees("checkpoint_opened", place)
        act.checkpoint = key
        await person.does(key.replace("/", "-"), act)


DOCUMENTS: Final = {
    each.name: each
    for each in (
        KeptDocument("panel", lambda: _panel("payments"), _payments),
        KeptDocument(
            "panel-with-trouble",
            lambda: _panel("business", synthesis_method=SYNTHESIS_METHOD_VOTING),
            _make_absent("round/1/propose/finance", "vote/finance"),
        ),
        KeptDocument("arena", lambda: _arena("payments", revision_rounds=1), _payments),
        KeptDocument(
            "arena-with-trouble",
            lambda: _arena("business", revision_rounds=1),
            _make_absent("round/1/propose/product", "round/*/vote/product"),
        ),
        KeptDocument("moderated", lambda: _moderated("sessions"), _written_moderator("sessions"), _approve),
        KeptDocument(
            "moderated-with-trouble",
            lambda: _moderated("hosting", custom_perspectives=_OWN),
            _absent_moderator,
            _refuse,
        ),
    )
}
"""By name of the file."""


def read_debate(kept: KeptDocument) -> Debate:
    """Return the debate that a kept log comes to."""
    events: list[Envelope] = []
    for line in kept.log.read_text("ascii").splitlines():
        events.append(open_entry(base64.b64decode(line), events[-1].hash if events else GENESIS))
    return fold(events)


def render(kept: KeptDocument) -> str:
    """Return the document of a kept log as it is made now."""
    debate = read_debate(kept)
    debate_format = all_formats().get(debate.spec.format)
    if debate.outcome.HasField("moderated"):
        return decision_of(debate, debate.outcome.moderated, debate_format).markdown
    return render_report(debate, debate_format)


async def _record_again(kept: KeptDocument) -> Sequence[Envelope]:
    """Hold a debate and return its log."""
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            backstage(Path(folder), kept.gateway()) as stage,
            stage.replica("kept", clock=clock) as replica,
        ):
            debate = await replica.create(kept.spec(), "kept")
            await kept.steer(Person(stage, replica, debate, clock))
            return await stage.comes_to(debate, "COMPLETED")


def main() -> None:
    """Have the debates held anew unless only documents are asked for, and write the documents."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "--render", action="store_true", help="write the documents of the logs that are there"
    )
    parser.add_argument("names", nargs="*", help="which; all unless some are named")
    given = parser.parse_args()
    for name, kept in DOCUMENTS.items():
        if given.names and name not in given.names:
            continue
        if not given.render:
            events = asyncio.run(_record_again(kept))
            lines = [base64.b64encode(event.entry).decode() for event in events]
            kept.log.write_text("\n".join(lines) + "\n", "ascii")
        kept.page.write_text(render(kept), "utf-8")


if __name__ == "__main__":
    main()
