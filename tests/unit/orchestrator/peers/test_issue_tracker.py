"""Issues at a tracker over real HTTP: asked for once, believed with care, and every failure is one line."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from aiohttp import web
from google.protobuf.struct_pb2 import Struct

from parley.orchestrator.model.errors import StepError
from parley.orchestrator.peers.issue_text import defuse
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.v1.moderated_pb2 import FollowUp
from tests.support.growth import check_growth
from tests.support.http_server import serve_app
from tests.support.issue_tracker_server import (
    ISSUE_URL,
    IssueTrackerServer,
    issue_tracker_server,
    make_answer,
    tracker_client,
    wait_forever,
)
from tests.support.ports import free_ports

ISSUE = Struct()
ISSUE.update({"title": "A cache?", "body": "## Question\n\n> ü", "labels": ["decision"]})
ACTS = re.compile(
    r"(?<!\w)@\w|[#!]\d|\bGH-\d|^[\s>-]*/[a-z]"
    r"|\b(clos|fix|resolv|implement)(e|es|ed|s|d|ing)?:?\s+(<?https?:|[\w/.-]*#|GH-)",
    re.IGNORECASE | re.MULTILINE,
)
"""What GitHub and GitLab act on, as their documentation has it."""
KEY = "deb-20270102-030405-abcdefgh"


@pytest.fixture
async def server() -> AsyncIterator[IssueTrackerServer]:
    async with issue_tracker_server() as served:
        yield served


async def failure(tracker: IssueTracker) -> StepError:
    with pytest.raises(StepError) as failed:
        await tracker.create_issue(ISSUE, KEY)
    assert "\n" not in str(failed.value)
    return failed.value


async def test_an_issue_is_posted_under_its_key_and_its_place_returned(server: IssueTrackerServer) -> None:
    made = await server.client(token="s3cret").create_issue(ISSUE, KEY)
    assert made == FollowUp(requested=True, url=ISSUE_URL)
    assert server.issues == [{"title": "A cache?", "body": "## Question\n\n> ü", "labels": ["decision"]}]
    (headers,) = server.headers
    assert (headers["Idempotency-Key"], headers["Authorization"]) == (KEY, "Bearer s3cret")
    assert headers["Content-Type"] == "application/json"


async def test_it_is_asked_by_the_proxy_of_the_environment_but_for_hosts_that_are_named(
    server: IssueTrackerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, _, path = server.url.removeprefix("http://").partition("/")
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy}")
    elsewhere = tracker_client(f"http://tracker.invalid/{path}")
    assert (await elsewhere.create_issue(ISSUE, KEY)).url == ISSUE_URL
    assert server.headers[0]["Host"] == "tracker.invalid"
    monkeypatch.setenv("NO_PROXY", ".invalid")
    assert (await failure(elsewhere)).reason == "TRACKER_AWAY"


async def test_without_a_token_none_is_sent(server: IssueTrackerServer) -> None:
    await server.client().create_issue(ISSUE, KEY)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("body", "url"),
    [
        ({"url": "http://a.b/7"}, "http://a.b/7"),
        ({"html_url": "javascript:alert(1)", "url": "http://a.b/7"}, "http://a.b/7"),
        ({"html_url": 7, "url": None}, ""),
        ({"url": "http://a.b/" + "7" * 2048}, ""),
        ({"url": "http://a.b/7\n## x"}, ""),
        ({"url": "http://u:p@a.b/"}, ""),
        ({"url": "http://"}, ""),
        ({"url": "http://[::1"}, ""),
        (["x"], ""),
        (b"<html>", ""),
        (b"", ""),
        (b"[" * 60_000, ""),
        (b'{"url": "http://a.b/7", "x": "' + b"x" * 70_000 + b'"}', ""),
    ],
    ids=str,
)
async def test_only_a_usable_link_is_taken_from_an_answer(
    server: IssueTrackerServer, body: object, url: str
) -> None:
    server.answer = make_answer(body)
    assert await server.client().create_issue(ISSUE, KEY) == FollowUp(requested=True, url=url)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b"oops", "answered 500 Internal Server Error"),
        (422, {"message": "Validation\nfailed"}, "answered 422 Unprocessable"),
        (599, {"message": "x" * 300}, f"answered 599: {'x' * 199}…"),
    ],
)
async def test_a_refusal_is_told_with_what_the_tracker_says(
    server: IssueTrackerServer, status: int, body: object, told: str
) -> None:
    server.answer = make_answer(body, status=status)
    failed = await failure(server.client())
    assert failed.reason == "TRACKER_REFUSED"
    assert str(failed).startswith(f"{server.client().name} {told}")


async def test_a_redirect_is_not_followed(server: IssueTrackerServer) -> None:
    async with issue_tracker_server() as elsewhere:
        server.answer = make_answer(status=307, Location=elsewhere.url)
        failed = await failure(server.client(token="s3cret"))
        assert not elsewhere.issues
    assert str(failed) == (
        f"{server.client().name} redirects elsewhere; PARLEY_FOLLOW_UP_URL must be the address itself"
    )


async def test_a_tracker_that_does_not_answer_is_given_up(server: IssueTrackerServer) -> None:
    server.answer = wait_forever
    failed = await failure(server.client(seconds=0.2))
    assert failed.reason == "TRACKER_TIMEOUT"
    assert (
        str(failed)
        == f"{server.client().name} did not answer within 0.2 s; it may have made the issue nonetheless"
    )


async def test_an_answer_that_never_ends_is_read_no_further_than_its_bound(
    server: IssueTrackerServer,
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=201)
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    app = web.Application()
    app.router.add_post("/", handle)
    async with serve_app(app) as port:
        tracker = tracker_client(f"http://127.0.0.1:{port}/")
        assert await tracker.create_issue(ISSUE, KEY) == FollowUp(requested=True)


async def test_a_tracker_that_is_away_is_named_without_the_rest_of_its_url() -> None:
    port = next(free_ports())
    failed = await failure(tracker_client(f"http://127.0.0.1:{port}/hooks/s3cret"))
    assert failed.reason == "TRACKER_AWAY"
    assert str(failed).startswith(f"http://127.0.0.1:{port} could not be reached: ")
    assert "s3cret" not in str(failed)


@pytest.mark.parametrize(
    "text",
    [
        "Ask @octocat and @org/team-x.",
        "(@octocat)",
        "\\@octocat",
        "&#64;octocat and &#x40;octocat and &commat;octocat",
        "Fixes #1",
        "closes: #1, RESOLVED owner/repo#12",
        "fixes https://github.com/o/r/issues/7",
        "Fix <https://gitlab.com/o/r/-/issues/7>",
        "Resolves GH-7 and see gh-8",
        "Implements \\#3, &#35;3",
        "See !12",
        "> /close\n> /assign me",
        "/label ~bug\n  /close",
        "- /close",
    ],
)
async def test_what_a_text_says_notifies_and_closes_nothing(server: IssueTrackerServer, text: str) -> None:
    issue = Struct()
    issue.update({"title": text, "body": f"## Question\n\n{text}", "labels": ["decision"]})
    await server.client().create_issue(issue, KEY)
    (sent,) = server.issues
    for name in ("title", "body"):
        shown = html.unescape(sent[name])
        assert not ACTS.search(shown), shown
        assert shown.replace("\u200b", "") == html.unescape(str(issue[name])), "it reads as it did"


def test_the_largest_text_that_looks_as_if_it_closed_something_holds_nothing_up() -> None:
    def defuse_so_many(characters: int) -> None:
        text = "fix:" + "_" * characters
        assert defuse(text) == text

    check_growth(defuse_so_many, 60_000)


async def test_an_address_of_mail_a_heading_and_a_link_stay(server: IssueTrackerServer) -> None:
    text = (
        "## Fixed costs\n\nMail a@b.example; 1/2 of it; https://github.com/o/r/issues/7 has more. C# or F#!"
    )
    issue = Struct()
    issue.update({"title": "Costs", "body": text, "labels": []})
    await server.client().create_issue(issue, KEY)
    assert server.issues[0]["body"] == text
