"""What all parts of a report need: the debate, its format, names in place of letters, and its numbered issues."""

from dataclasses import dataclass
from functools import cached_property, partial

from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.issue_table import IssueTable
from parley.orchestrator.model.names import names_of
from parley.runtime.agent_names import Names
from parley.runtime.safe_markdown import inline
from parley.v1.debate_pb2 import Contribution, Debate


@dataclass(frozen=True)
class ReportPage:
    """A debate as its report shows it.

    Attributes:
        debate_format: None if it is not known here.
    """

    debate: Debate
    debate_format: Format | None

    @cached_property
    def names(self) -> Names:
        """The names of its agents."""
        return names_of(self.debate)

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        """Its contributions, in the order of the log."""
        return tuple(self.debate.contributions)

    @cached_property
    def answers(self) -> tuple[Contribution, ...]:
        """Those that are its answer."""
        return tuple(made for made in self.contributions if made.is_answer and not made.work.round)

    @cached_property
    def issues(self) -> IssueTable:
        """All issues, numbered."""
        return IssueTable(self.contributions)

    def contribution(self, key: str) -> Contribution | None:
        """Return the contribution of a step; None if there is none."""
        return self._contributions.get(key)

    @cached_property
    def _contributions(self) -> dict[str, Contribution]:
        return {made.key: made for made in self.contributions}

    @cached_property
    def _is_moderated(self) -> bool:
        return self.debate.spec.HasField("moderated")

    def name_of(self, agent: str) -> str:
        """Return the name of an agent as text that is no markup."""
        return inline(self.names.of(agent))

    def name_issue(self, made: Contribution, critic: str, number: int) -> str:
        """Return what people call the issue that a contribution means, or a point of its own; empty if it means neither."""
        if self._is_moderated:
            return f"point {number}" if critic == made.work.agent_id else ""
        issue = self.issues.of(made, critic, number)
        return f"issue {issue.number}" if issue is not None else ""

    def text_of(self, made: Contribution) -> str:
        """Return a contribution as people read it: rendered if it is structured, and with names in place of letters."""
        text = made.reply.rendered or made.reply.text
        return self.names.put_in(text, partial(self.name_issue, made))
