"""Checks of requests: all bad fields are reported together."""

from collections.abc import Sequence
from typing import Final

from parley.runtime.validation import AGENT_ID, NAME, Violations
from parley.v1 import ratings_pb2 as pb

_MAX_AGENTS: Final = 100
_MAX_ANSWERS: Final = 1000
_MAX_PHASES: Final = 1000
_MAX_ENCOUNTERS: Final = 5000
_MAX_NAME: Final = 64
_MAX_REASON: Final = 500

_Outcome = pb.RecordMatchRequest | pb.CorrectMatchRequest


def check_weights(violations: Violations, request: pb.GetWeightsRequest) -> None:
    """Add the bad fields of a request for weights."""
    _check_agents(violations, "agent_ids", request.agent_ids, minimum=1)
    _check_domain(violations, request.domain)
    violations.check(
        that=request.rule in pb.WeightRule.values(), field="rule", otherwise="is not a known rule"
    )


def check_match(violations: Violations, request: pb.RecordMatchRequest) -> None:
    """Add the bad fields of a match."""
    _check_debate(violations, request.debate_id)
    _check_domain(violations, request.domain)
    _check_outcome(violations, request)


def check_correction(violations: Violations, request: pb.CorrectMatchRequest) -> None:
    """Add the bad fields of a correction."""
    _check_debate(violations, request.debate_id)
    violations.check(that=request.number >= 1, field="number", otherwise="must be at least 1")
    violations.check_text("reason", request.reason, max_characters=_MAX_REASON)
    if not request.void:
        _check_outcome(violations, request)
        return
    for field in ("results", "answers", "phases", "encounters"):
        violations.check(
            that=not getattr(request, field), field=field, otherwise="must be empty where the match is void"
        )


def check_feedback(violations: Violations, request: pb.RecordFeedbackRequest) -> None:
    """Add the bad fields of feedback on a debate."""
    _check_debate(violations, request.debate_id)
    _check_domain(violations, request.domain)
    violations.check(that=request.number >= 1, field="number", otherwise="must be at least 1")
    violations.check(that=request.value in (1, -1), field="value", otherwise="must be 1 or -1")
    _check_agents(violations, "agent_ids", request.agent_ids, minimum=1)


def check_team(violations: Violations, request: pb.SelectTeamRequest) -> None:
    """Add the bad fields of a request for a team."""
    _check_debate(violations, request.debate_id)
    _check_agents(violations, "candidate_agent_ids", request.candidate_agent_ids, minimum=1)
    _check_domain(violations, request.domain)
    violations.check_range("size", request.size, 1, max(len(request.candidate_agent_ids), 1))
    violations.check_range("exploration_share", request.exploration_share, 0, 1)


def check_rating_list(violations: Violations, request: pb.ListRatingsRequest) -> int:
    """Return the page size for ratings, and add the request's bad fields except its token."""
    _check_domain(violations, request.domain)
    violations.check(that=request.min_matches >= 0, field="min_matches", otherwise="must not be negative")
    return violations.page_size(request.page_size)


def check_match_list(violations: Violations, request: pb.ListMatchesRequest) -> int:
    """Return the page size for matches, and add the request's bad fields except its token."""
    if request.agent_id:
        check_agent(violations, request.agent_id)
    _check_domain(violations, request.domain)
    return violations.page_size(request.page_size)


def check_relationship_list(violations: Violations, request: pb.ListRelationshipsRequest) -> int:
    """Return the page size for relationships, and add the request's bad fields except its token."""
    check_agent(violations, request.agent_id)
    return violations.page_size(request.page_size)


def check_agent(violations: Violations, agent_id: str) -> None:
    """Add an `agent_id` that is none."""
    violations.check(
        that=bool(AGENT_ID.fullmatch(agent_id)), field="agent_id", otherwise=f"must match {AGENT_ID.pattern}"
    )


def _check_outcome(violations: Violations, request: _Outcome) -> None:
    agent_ids = [each.agent_id for each in request.results]
    _check_agents(violations, "results", agent_ids, minimum=2, path=".agent_id")
    for place, result in enumerate(request.results):
        _check_score(violations, f"results[{place}].score", result.score)
    _check_answers(violations, request, set(agent_ids))
    _check_phases(violations, request, set(agent_ids))
    _check_encounters(violations, request, set(agent_ids))


def _check_answers(violations: Violations, request: _Outcome, agents: set[str]) -> None:
    _check_count(violations, "answers", len(request.answers), _MAX_ANSWERS)
    for place, each in enumerate(request.answers[:_MAX_ANSWERS]):
        _check_scored(violations, f"answers[{place}].agent_id", each.agent_id, agents)
        violations.check_range(f"answers[{place}].confidence", each.confidence, 0, 1)


def _check_phases(violations: Violations, request: _Outcome, agents: set[str]) -> None:
    _check_count(violations, "phases", len(request.phases), _MAX_PHASES)
    seen: set[str] = set()
    for place, each in enumerate(request.phases[:_MAX_PHASES]):
        _check_scored(violations, f"phases[{place}].agent_id", each.agent_id, agents)
        violations.check_text(f"phases[{place}].phase", each.phase, max_characters=_MAX_NAME)
        violations.check_new(f"phases[{place}]", f"{each.agent_id}/{each.phase}", seen)
        _check_score(violations, f"phases[{place}].score", each.score)


def _check_encounters(violations: Violations, request: _Outcome, agents: set[str]) -> None:
    _check_count(violations, "encounters", len(request.encounters), _MAX_ENCOUNTERS)
    seen: set[str] = set()
    for place, each in enumerate(request.encounters[:_MAX_ENCOUNTERS]):
        path = f"encounters[{place}]"
        _check_scored(violations, f"{path}.agent_id", each.agent_id, agents)
        _check_scored(violations, f"{path}.other_agent_id", each.other_agent_id, agents)
        violations.check(
            that=each.agent_id != each.other_agent_id,
            field=f"{path}.other_agent_id",
            otherwise="is the agent itself",
        )
        violations.check_new(path, "/".join(sorted((each.agent_id, each.other_agent_id))), seen)
        violations.check(
            that=each.agreements >= 0, field=f"{path}.agreements", otherwise="must not be negative"
        )
        violations.check(
            that=each.disagreements >= 0, field=f"{path}.disagreements", otherwise="must not be negative"
        )


def _check_scored(violations: Violations, field: str, agent_id: str, agents: set[str]) -> None:
    violations.check(that=agent_id in agents, field=field, otherwise=f"{agent_id!r} is not among the results")


def _check_count(violations: Violations, field: str, count: int, maximum: int) -> None:
    violations.check(that=count <= maximum, field=field, otherwise=f"has {count} entries, at most {maximum}")


def _check_score(violations: Violations, field: str, score: float) -> None:
    violations.check(
        that=0 <= score <= 10,  # false for NaN
        field=field,
        otherwise=f"is {score:g}, must be 0 to 10",
    )


def _check_debate(violations: Violations, debate_id: str) -> None:
    violations.check(
        that=bool(NAME.fullmatch(debate_id)),
        field="debate_id",
        otherwise="must be 1 to 128 characters of [A-Za-z0-9._-]",
    )


def _check_agents(
    violations: Violations, field: str, agent_ids: Sequence[str], *, minimum: int, path: str = ""
) -> None:
    violations.check_agent_count(field, len(agent_ids), minimum=minimum, maximum=_MAX_AGENTS)
    seen: set[str] = set()
    for place, agent_id in enumerate(agent_ids):
        if AGENT_ID.fullmatch(agent_id):
            violations.check_new(f"{field}[{place}]{path}", agent_id, seen)
        else:
            violations.add(f"{field}[{place}]{path}", f"must match {AGENT_ID.pattern}")


def _check_domain(violations: Violations, domain: str) -> None:
    violations.check(
        that=len(domain) <= _MAX_NAME,
        field="domain",
        otherwise=f"has {len(domain)} characters, at most {_MAX_NAME} are allowed",
    )
