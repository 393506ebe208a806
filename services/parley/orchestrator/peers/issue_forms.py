"""What kinds of issue trackers take, and how an issue is found there again."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from msgspec import Struct

from parley.orchestrator.outgoing.web_address import is_http_url
from parley.orchestrator.peers.issue_text import defuse

PAGE_SIZE: Final = 50
"""Issues on a page of `TrackerForm.newest`."""
_MAX_CHARACTERS: Final = 65_536
"""Of a title or a body: GitHub takes no more."""
_MAX_URL_CHARACTERS: Final = 2048
_GITHUB: Final = re.compile(r"(?P<root>(?:/api/v3)?)/repos/(?P<repository>[^/]+/[^/]+)/issues/?")
_GITLAB: Final = re.compile(r".*/api/v4/projects/[^/]+/issues/?")


class TrackerForm(Struct, frozen=True):
    """One kind of tracker, at one address.

    Attributes:
        text_name: The field of an issue's text.
        joins_labels: Whether labels are one text, with commas.
        newest: URL of a page of issues, the newest first, with `{page}` for its number from 1; empty: there is none.
        search: URL of a search, with `{debate}` for the debate's id; empty: nothing is searched.
        keeps_marks: Whether it shows the mark as it was sent, a comment that people do not see; else an issue is found by the id anywhere in it.
    """

    text_name: str = "body"
    joins_labels: bool = False
    newest: str = ""
    search: str = ""
    keeps_marks: bool = False

    @property
    def can_look(self) -> bool:
        """Whether an issue can be found again."""
        return bool(self.newest or self.search)

    def write(self, issue: Mapping[str, Any], debate: str) -> bytes:
        """Return the request's body for an issue of `title`, `body` and `labels`."""
        mark = f"\n\n<!-- {_mark(debate)} -->" if self.can_look else ""
        fields = dict(issue)
        if "title" in fields:
            fields["title"] = defuse(fields["title"])[:_MAX_CHARACTERS]
        if "body" in fields:
            fields[self.text_name] = defuse(fields.pop("body"))[: _MAX_CHARACTERS - len(mark)] + mark
        if self.joins_labels and "labels" in fields:
            fields["labels"] = ",".join(fields["labels"])
        return json.dumps(fields).encode()

    def is_made_of(self, issue: Mapping[str, Any], debate: str) -> bool:
        """Return whether an issue was made of a debate's decision."""
        if self.keeps_marks:
            return f"<!-- {_mark(debate)} -->" in str(issue.get(self.text_name))
        return any(isinstance(each, str) and debate in each for each in issue.values())


def form_of(url: str, search: str = "") -> TrackerForm:
    """Return the form of the tracker that takes issues at a URL: GitHub's, GitLab's, or a plain one with a search of its own."""
    parts = urlsplit(url)
    base, host = url.rstrip("/"), (parts.hostname or "").lower()
    github, gitlab = _GITHUB.fullmatch(parts.path), _GITLAB.fullmatch(parts.path)
    if parts.query or search:
        return TrackerForm(search=search)
    if github and (github["root"] or host == "api.github.com" or host.endswith(".ghe.com")):
        query = quote(f'repo:{github["repository"]} is:issue in:body "')
        return TrackerForm(
            newest=f"{base}?state=all&sort=created&direction=desc&per_page={PAGE_SIZE}&page={{page}}",
            search=f"{parts.scheme}://{parts.netloc}{github['root']}/search/issues?q={query}{{debate}}%22",
            keeps_marks=True,
        )
    if gitlab:
        return TrackerForm(
            text_name="description",
            joins_labels=True,
            newest=f"{base}?scope=all&order_by=created_at&sort=desc&per_page={PAGE_SIZE}&page={{page}}",
            search=f"{base}?scope=all&in=description&per_page={PAGE_SIZE}&search={{debate}}",
            keeps_marks=True,
        )
    return TrackerForm()


def read_issue(body: bytes) -> dict[str, Any]:
    """Return the object in an answer; an empty one if there is none."""
    answer = _parse(body)
    return answer if isinstance(answer, dict) else {}


def read_issues(body: bytes) -> list[dict[str, Any]] | None:
    """Return the issues in a list, or in the first list of an object; None if there is no list."""
    answer = _parse(body)
    if isinstance(answer, dict):
        answer = next((each for each in answer.values() if isinstance(each, list)), None)
    return [each for each in answer if isinstance(each, dict)] if isinstance(answer, list) else None


def issue_url(issue: Mapping[str, Any]) -> str:
    """Return an issue's address, for people before programs; empty if it has no usable one."""
    urls = (issue.get(name) for name in ("html_url", "web_url", "url"))
    return next((each for each in urls if isinstance(each, str) and _is_link(each)), "")


def _parse(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parsed


def _is_link(url: str) -> bool:
    return len(url) <= _MAX_URL_CHARACTERS and is_http_url(url)


def _mark(debate: str) -> str:
    return f"parley-debate: {debate}"
