"""What has been said in an arena so far: present texts, the critiques that stand, and what became of them."""

from collections.abc import Callable, Collection, Sequence

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.critiques import SERIOUS
from parley.orchestrator.model.topology import Edge
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP


def _ignore(_made: Contribution) -> None:
    pass


class Transcript:
    """The texts and critiques of one debate, in one run of its format.

    A critique stands until its target was rewritten. A critic that has criticized a text is not asked about the same
    text again.

    Attributes:
        contributions: All texts and critiques, in the order in which they were taken in.
    """

    def __init__(self, heard: Callable[[Contribution], None] | None = None) -> None:
        """Begin one; `heard` gets each text and critique as it is taken in."""
        self._heard = heard or _ignore
        self._work: dict[str, Contribution] = {}
        self._drafts: dict[str, Contribution] = {}
        self._open_critiques: dict[Edge, Contribution] = {}
        self._exchanges: list[list[Contribution]] = []
        self.contributions: list[Contribution] = []

    def _on_added(self, made: Contribution) -> None:
        self.contributions.append(made)
        self._heard(made)

    def works(self, order: Sequence[str], without: Collection[str] = ()) -> list[Contribution]:
        """Return the present texts of these agents, in this order."""
        return [self._work[each] for each in order if each in self._work and each not in without]

    def work(self, agent: str) -> Contribution:
        """Return an agent's present text; it has one."""
        return self._work[agent]

    def draft(self, agent: str) -> Contribution:
        """Return an agent's first text; it has one."""
        return self._drafts[agent]

    def has_work(self, agent: str) -> bool:
        """Return whether an agent has a text."""
        return agent in self._work

    def add_proposal(self, made: Contribution) -> None:
        """Take a first text in."""
        self._work[made.agent] = self._drafts[made.agent] = made
        self._on_added(made)

    def add_critique(self, made: Contribution) -> None:
        """Take a critique of a present text in."""
        self._open_critiques[made.agent, made.target] = made
        self._on_added(made)

    def missing_edges(self, edges: Sequence[Edge]) -> list[Edge]:
        """Return the edges whose critic has not criticized the present text."""
        return [each for each in edges if each not in self._open_critiques]

    def open_critiques(self, target: str) -> list[Contribution]:
        """Return the critiques that stand against a present text."""
        return [made for (_, of), made in self._open_critiques.items() if of == target]

    def add_revisions(self, refinements: Sequence[Contribution]) -> None:
        """Take in what became of texts, each with the answers that it gives to the critiques of the text before."""
        rewritten = {made.agent for made in refinements}
        answered = [made for (_, target), made in self._open_critiques.items() if target in rewritten]
        if answered:
            self._exchanges.append([*answered, *refinements])
        self._open_critiques = {
            edge: made for edge, made in self._open_critiques.items() if edge[1] not in rewritten
        }
        self._work |= {made.agent: made for made in refinements}
        for made in refinements:
            self._on_added(made)

    def critiques_of(self, number: int) -> list[Contribution]:
        """Return the critiques that the revisions of a round have answered; those that still stand are not among them."""
        last = self._exchanges[-1] if self._exchanges else []
        is_of_round = any(made.round == number for made in last if not made.target)
        return [made for made in last if made.target] if is_of_round else []

    def exchanges(self, agent: str = "") -> list[list[Contribution]]:
        """Return critiques with the revisions that answered them, oldest first, and those that stand last; of one agent's work or all."""
        found = [
            [made for made in exchange if not agent or agent in (made.target or made.agent, made.target)]
            for exchange in [*self._exchanges, list(self._open_critiques.values())]
        ]
        return [each for each in found if each]

    def last_exchange(self, edge: Edge) -> list[Contribution]:
        """Return the critiques among which a critic's last one of an author is that was answered, with the answer; empty for none."""
        of_edge = (
            each
            for each in reversed(self._exchanges)
            if any((made.agent, made.target) == edge for made in each)
        )
        return next(of_edge, [])

    def has_serious_open_issue(self, agents: Collection[str]) -> bool:
        """Return whether a serious issue against the work of one of these agents was not taken up, as far as they say."""
        for exchange in [*self._exchanges[-1:], list(self._open_critiques.values())]:
            taken_up = {
                (made.agent, answer.critic_agent_id, answer.number)
                for made in exchange
                for answer in made.answers
                if answer.status == ISSUE_STATUS_TAKEN_UP
            }
            for made in exchange:
                if made.critique is None or made.target not in agents:
                    continue
                for issue in made.critique.issues:
                    name = (made.target, made.agent, issue.number)
                    if issue.severity >= SERIOUS and name not in taken_up:
                        return True
        return False
