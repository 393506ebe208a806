"""The example debate that `parley demo` plays: its source, and how it is recorded.

`python -m tests.support.example_debate` records the source anew, at the pace at which it is played: today's format holds
the debate, and a gateway reads the agents' texts from the source. Record it again when the source changes, or when a new
version of the format shows a debate better.
"""

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from parley.example import LOG
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.model.positions import position_of
from parley.v1 import agent_pb2, convergence_pb2, gateway_pb2
from parley.v1.agent_pb2 import SummarySettings
from tests.support.grouping_answers import list_shown_positions
from tests.support.orchestration import agent, backstage, make_debate, panel_settings, until
from tests.support.scripted_gateway import ScriptedGateway

SOURCE: Final = Path(__file__).parents[1] / "data" / "example" / "debate.yaml"
_WRITTEN_BY: Final = "written by hand"
"""Stands where a model is named."""
_CHARACTERS_OF_TOKEN: Final = 4
_SECONDS_BEFORE: Final = 0.6
_CHARACTERS_OF_SECOND: Final = 1200


@dataclass(frozen=True, slots=True)
class Source:
    """What the people who wrote the example wrote."""

    written: Mapping[str, Any]

    @property
    def question(self) -> str:
        """What is debated."""
        return str(self.written["question"])

    @property
    def agents(self) -> Sequence[str]:
        """Ids of the agents, which are their roles."""
        return tuple(self.written["agents"])

    def text(self, step: str) -> str:
        """Return what is said in a step, by its key."""
        match step.split("/"):
            case ["round", "1", "propose", name]:
                return str(self.written["proposals"][name]).strip()
            case ["round", "1", "critique", critic, "of", author]:
                return self._critique(critic, author)
            case ["round", "1", "refine", name]:
                return self._refinement(name)
            case ["requirements"]:
                kind = self.written["question_kind"]
                return json.dumps({"requirements": self.written["requirements"], "kind": kind})
            case ["synthesis"]:
                return self._answer()
        raise AssertionError(f"the example says nothing in {step}")

    def groups(self) -> convergence_pb2.GroupPositionsResponse:
        """Return how the first drafts group."""
        groups = [
            convergence_pb2.PositionGroup(
                agent_ids=each["agents"],
                representative_agent_id=each["agents"][0],
                position=each["position"],
            )
            for each in self.written["groups"]
        ]
        return convergence_pb2.GroupPositionsResponse(groups=groups, majority=False)

    def with_positions(self, answer: str, shown: Mapping[str, str]) -> str:
        """Return an answer with its groups of the positions that its writer is shown, by their names."""
        names = {text: name for name, text in shown.items()}
        read = json.loads(answer)
        said = read["positions"]
        groups = [[names[self._position(step)] for step in group] for group in said["groups"]]
        taken = names[self._position(said["answer"])]
        read["positions"] = {"groups": groups, "cannot_be_told": [], "answer": taken}
        return json.dumps(read, ensure_ascii=False)

    def _position(self, step: str) -> str:
        return position_of(self.text(f"round/1/{step}"))

    def _critique(self, critic: str, author: str) -> str:
        found = next(
            each for each in self.written["critiques"] if (each["by"], each["of"]) == (critic, author)
        )
        issues = [
            {"issue": each["text"], "severity": each["severity"], "suggestion": each["suggestion"]}
            for each in found["issues"]
        ]
        critique = {"issues": issues, "agrees": found["agrees"], "remarks": found["sound"]}
        return json.dumps(critique, ensure_ascii=False)

    def _refinement(self, name: str) -> str:
        answers = [f"- {issue}: {said}" for issue, said in self.written["answers"][name].items()]
        text = str(self.written["refinements"][name]).strip()
        return "\n".join([text, "", "## Answers to issues", "", *answers])

    def _answer(self) -> str:
        letters = {name: chr(ord("A") + place) for place, name in enumerate(self.agents)}
        answer = dict(self.written["answer"])
        answer |= {part: str(answer[part]).strip() for part in ("description", "implementation")}
        answer["scores"] = {letters[name]: score for name, score in answer["scores"].items()}
        return json.dumps(answer, ensure_ascii=False)


class ExampleGateway(ScriptedGateway):
    """Answers from the source, and takes as long as it takes to see that somebody is at work."""

    def __init__(self, told: Source) -> None:
        super().__init__()
        self._told = told
        self.group = told.groups

    async def Generate(  # noqa: N802
        self, request: gateway_pb2.GenerateRequest, context: object
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        text = self._told.text(request.call_id.step)
        if request.call_id.step == "synthesis":
            prompt = "\n\n".join(part.text for part in request.prompt)
            text = self._told.with_positions(text, list_shown_positions(prompt))
        seconds = _SECONDS_BEFORE + len(text) / _CHARACTERS_OF_SECOND
        await asyncio.sleep(seconds)
        asked = sum(len(part.text) for part in request.prompt)
        usage = agent_pb2.Usage(
            input_tokens=asked // _CHARACTERS_OF_TOKEN,
            output_tokens=len(text) // _CHARACTERS_OF_TOKEN,
            cost_micros=0,
        )
        completed = gateway_pb2.GenerateCompleted(text=text, model=_WRITTEN_BY, usage=usage)
        completed.latency.FromMilliseconds(round(seconds * 1000))
        yield gateway_pb2.GenerateResponse(completed=completed)


def source() -> Source:
    """Return the source."""
    return Source(yaml.safe_load(SOURCE.read_text("utf-8")))


async def record_again(told: Source) -> Sequence[Envelope]:
    """Hold the debate and return its log."""
    spec = make_debate(
        question=told.question,
        format=all_formats().get("panel").id,
        agents=tuple(agent(name, name) for name in told.agents),
        judge=agent("judge", "judge"),
        settings=panel_settings(rounds=1, summaries=SummarySettings(enabled=False)),
    )
    with tempfile.TemporaryDirectory() as folder:
        async with (
            backstage(Path(folder), ExampleGateway(told)) as stage,
            stage.replica("example") as replica,
        ):
            debate = await replica.create(spec, "example")

            async def is_completed() -> bool:
                return "closed" in await stage.kinds(debate)

            await until(is_completed, "the example is completed", within=60)
            return await stage.events(debate)


def main() -> None:
    """Record the log anew."""
    events = asyncio.run(record_again(source()))
    LOG.write_text("".join(f"{base64.b64encode(each.entry).decode()}\n" for each in events), "ascii")


if __name__ == "__main__":
    main()
