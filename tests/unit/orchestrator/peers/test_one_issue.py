"""One issue of a debate, at trackers that keep no `Idempotency-Key`, whatever goes wrong between them and us."""

from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from google.protobuf.struct_pb2 import Struct
from standardwebhooks import Webhook

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.model.ids import new_debate_id
from parley.orchestrator.peers.issue_forms import form_of
from tests.support.issue_trackers import Fault, Kind, Tracker, tracker
from tests.support.web_server import web_server

ISSUE = Struct()
ISSUE.update({"title": "A cache?", "body": "## Question\n\n> ü", "labels": ["decision", "cache"]})
LOOKS = [(Kind.GITHUB, ""), (Kind.GITLAB, ""), (Kind.OTHER, "?search={debate}")]
"""Trackers where an issue can be looked for."""
looks = pytest.mark.parametrize(("kind", "search"), LOOKS, ids=["GitHub", "GitLab", "with a search"])


def make_id(age: timedelta = timedelta()) -> str:
    return new_debate_id(datetime.now(UTC) - age)


async def failure(served: Tracker, debate: str, search: str = "") -> str:
    with pytest.raises(StepError) as failed:
        await served.client(search=search).create_issue(ISSUE, debate)
    assert "\n" not in str(failed.value)
    return str(failed.value)


async def test_github_gets_its_own_fields_and_a_mark_that_nobody_sees() -> None:
    async with tracker(Kind.GITHUB) as served:
        debate = make_id()
        made = await served.client(token="s3cret").create_issue(ISSUE, debate)
    assert made.url == "https://tracker.example/issues/1"
    (issue,) = served.issues
    assert issue["body"] == f"## Question\n\n> ü\n\n<!-- parley-debate: {debate} -->"
    assert (issue["title"], issue["labels"]) == ("A cache?", ["decision", "cache"])
    (headers,) = served.headers
    assert (headers["Authorization"], headers["Idempotency-Key"]) == ("Bearer s3cret", debate)


async def test_gitlab_gets_its_own_fields() -> None:
    async with tracker(Kind.GITLAB) as served:
        debate = make_id()
        made = await served.client().create_issue(ISSUE, debate)
    assert made.url == "https://tracker.example/issues/1"
    (issue,) = served.issues
    assert issue["description"].startswith("## Question\n\n> ü\n\n<!-- ")
    assert "body" not in issue
    assert issue["labels"] == "decision,cache"


async def test_a_mark_stands_at_the_end_of_the_longest_text() -> None:
    long = Struct()
    long.update({"title": "x" * 70_000, "body": "@a " * 30_000, "labels": []})
    async with tracker(Kind.GITHUB) as served:
        debate = make_id()
        await served.client().create_issue(long, debate)
    (issue,) = served.issues
    assert len(issue["title"]) == len(issue["body"]) == 65_536
    assert issue["body"].endswith(f"<!-- parley-debate: {debate} -->")


@looks
@pytest.mark.parametrize(
    "faults",
    [
        [Fault.LOSES_ANSWER],
        [Fault.FAILS_AFTERWARDS],
        [Fault.HANGS_UP, Fault.LOSES_ANSWER],
        [Fault.FAILS, Fault.LIMITS, Fault.LIMITS_AS_GITHUB, Fault.FAILS_AFTERWARDS],
        [Fault.HANGS_UP, Fault.FAILS],
    ],
    ids=lambda each: ",".join(fault.name.lower() for fault in each),
)
async def test_there_is_one_issue_whatever_goes_wrong(kind: Kind, search: str, faults: list[Fault]) -> None:
    async with tracker(kind) as served:
        served.add(3)
        served.faults = list(faults)
        made = await served.client(search=search).create_issue(ISSUE, make_id())
    assert len(served.issues) == 4
    assert made.url == "https://tracker.example/issues/4"
    assert not made.failure


@looks
async def test_whoever_asks_again_later_gets_the_same_issue(kind: Kind, search: str) -> None:
    async with tracker(kind) as served:
        debate = make_id(age=timedelta(days=30))
        first = await served.client(search=search).create_issue(ISSUE, debate)
        served.add(400)
        again = await served.client(search=search).create_issue(ISSUE, debate)
    assert first.url == again.url == "https://tracker.example/issues/1"
    assert len(served.bodies) == 1


@pytest.mark.parametrize("kind", [Kind.GITHUB, Kind.GITLAB])
async def test_an_issue_is_found_that_no_index_knows_yet(kind: Kind) -> None:
    async with tracker(kind) as served:
        served.indexed = 0
        served.faults = [Fault.LOSES_ANSWER]
        await served.client().create_issue(ISSUE, make_id())
    assert len(served.issues) == 1


@pytest.mark.parametrize("kind", [Kind.GITHUB, Kind.GITLAB])
async def test_no_older_issue_than_the_debate_is_looked_at(kind: Kind) -> None:
    async with tracker(kind) as served:
        served.add(400, age=timedelta(days=2))
        served.add(60)
        await served.client().create_issue(ISSUE, make_id(age=timedelta(minutes=5)))
    assert len(served.lists) == 2, "two pages, and no search"


@pytest.mark.parametrize("kind", [Kind.GITHUB, Kind.GITLAB])
async def test_an_issue_that_only_speaks_of_the_debate_is_not_taken_for_its_own(kind: Kind) -> None:
    async with tracker(kind) as served:
        debate = make_id()
        served.add(1, text=f"See {debate}.")
        made = await served.client().create_issue(ISSUE, debate)
    assert made.url == "https://tracker.example/issues/2"


async def test_where_nothing_can_be_looked_for_a_try_that_may_have_made_it_is_the_last() -> None:
    for fault in (Fault.LOSES_ANSWER, Fault.FAILS_AFTERWARDS):
        async with tracker(Kind.OTHER) as served:
            served.faults = [fault]
            await failure(served, make_id())
        assert len(served.issues) == 1


async def test_there_a_try_that_made_none_is_followed_by_another() -> None:
    async with tracker(Kind.OTHER) as served:
        served.faults = [Fault.LIMITS, Fault.LIMITS]
        await served.client().create_issue(ISSUE, make_id())
    assert len(served.issues) == 1
    assert served.clock.pauses == [40.0, 40.0], "as Retry-After says"


@looks
async def test_a_tracker_that_stays_away_is_given_up_in_time_and_said(kind: Kind, search: str) -> None:
    async with tracker(kind) as served:
        served.faults = [Fault.FAILS] * 100
        told = await failure(served, make_id(), search)
    assert told == f"{served.client().name} answered 502 Bad Gateway: No way"
    assert 100 < sum(served.clock.pauses) <= 180


async def test_a_refusal_is_not_tried_again() -> None:
    async with tracker(Kind.GITHUB) as served:
        served.faults = [Fault.REFUSES]
        assert "answered 422" in await failure(served, make_id())
    assert len(served.bodies) == 1


async def test_nothing_is_made_while_it_is_not_known_whether_it_was_made() -> None:
    async with tracker(Kind.OTHER) as served:
        told = await failure(served, make_id(), "/elsewhere?search={debate}")
    assert "answered 404 Not Found" in told
    assert not served.bodies


@pytest.mark.parametrize(
    "answer", ["<html>", '{"message": "ok"}', "[" * 60_000, '[{"body": "' + "x" * 9_000_000 + '"}]']
)
async def test_nothing_is_made_while_no_list_can_be_read(answer: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=answer)

    async with tracker(Kind.OTHER) as served, web_server(handle) as elsewhere:
        served.elsewhere = elsewhere
        told = await failure(served, make_id(), "{debate}")
    assert told.endswith("did not answer with a list of issues that can be read")
    assert not served.bodies


async def test_a_secret_signs_what_is_sent() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    async with tracker(Kind.OTHER) as served:
        await served.client(secret=secret).create_issue(ISSUE, make_id())
    assert Webhook(secret).verify(served.bodies[0], served.headers[0])["title"] == "A cache?"


@pytest.mark.parametrize(
    ("url", "looked_for_at"),
    [
        ("https://api.github.com/repos/o/r/issues", "https://api.github.com/search/issues?q=repo%3Ao/r%20"),
        ("https://api.acme.ghe.com/repos/o/r/issues", "https://api.acme.ghe.com/search/issues?q="),
        ("https://github.acme/api/v3/repos/o/r/issues", "https://github.acme/api/v3/search/issues?q="),
        (
            "https://gitlab.com/api/v4/projects/7/issues",
            "https://gitlab.com/api/v4/projects/7/issues?scope=all",
        ),
        (
            "https://acme.example/gitlab/api/v4/projects/a%2Fb/issues",
            "https://acme.example/gitlab/api/v4/projects/a%2Fb/issues?",
        ),
        ("https://codeberg.org/api/v1/repos/o/r/issues", ""),
        ("https://tracker.example/hooks/s3cret", ""),
        ("https://api.github.com.evil.example/repos/o/r/issues", ""),
    ],
)
def test_a_tracker_is_known_by_its_url(url: str, looked_for_at: str) -> None:
    form = form_of(url)
    assert form.search.startswith(looked_for_at)
    assert form.can_look == bool(looked_for_at)
