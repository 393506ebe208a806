"""The orchestrator's settings, where one depends on another or may hold a secret."""

import shutil
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import pytest

from parley.orchestrator.research.servers import ToolServer
from parley.orchestrator.settings import OrchestratorSettings
from parley.runtime.clock import SystemClock
from parley.runtime.errors import ConfigurationError

URL = "https://tracker.example/hooks/s3cret-path"
_WIKI = """{"name": "wiki", "command": "sh -c 'serve --fast; $HOME'", "tool": "search"}"""


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> OrchestratorSettings:
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLEY_{name}", value)
    return OrchestratorSettings.load()


def test_no_follow_up_is_offered_unless_an_address_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch).create_issue_tracker(SystemClock()) is None


def test_an_address_is_a_tracker_that_is_named_without_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, FOLLOW_UP_URL=URL, FOLLOW_UP_TOKEN="s3cret-token")
    tracker = settings.create_issue_tracker(SystemClock())
    assert tracker is not None
    assert tracker.name == "https://tracker.example"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (
            {"FOLLOW_UP_URL": "ftp://s3cret"},
            "PARLEY_FOLLOW_UP_URL: must begin with http:// or https://, name a host, and hold no space and no @",
        ),
        (
            {"FOLLOW_UP_URL": URL, "FOLLOW_UP_TOKEN": "s3cret\nX-Other: 1"},
            "PARLEY_FOLLOW_UP_TOKEN: must be ASCII without spaces and control characters",
        ),
        (
            {"FOLLOW_UP_TOKEN": "s3cret"},
            "PARLEY_FOLLOW_UP_TOKEN needs PARLEY_FOLLOW_UP_URL: set both, or neither",
        ),
        (
            {"FOLLOW_UP_SEARCH": "https://tracker.example/?q={debate}"},
            "PARLEY_FOLLOW_UP_SEARCH needs PARLEY_FOLLOW_UP_URL: set both, or neither",
        ),
        (
            {"FOLLOW_UP_URL": URL, "FOLLOW_UP_SEARCH": "https://tracker.example/s3cret"},
            "PARLEY_FOLLOW_UP_SEARCH: must hold {debate}, in whose place the debate's id is put",
        ),
        (
            {"FOLLOW_UP_URL": URL, "FOLLOW_UP_SECRET": "s3cret"},
            "PARLEY_FOLLOW_UP_SECRET: must be whsec_ and 24 to 64 bytes in base64",
        ),
        (
            {"HOOK_HOSTS": "hooks.internal,s3cret host"},
            "PARLEY_HOOK_HOSTS: must be hosts and networks, as hooks.internal,10.1.0.0/16",
        ),
        ({"HOOK_FOLDER": "/s3cret"}, "PARLEY_HOOK_FOLDER: must be a folder that is there"),
        (
            {"MAIL_SERVER": "mail.example:s3cret"},
            "PARLEY_MAIL_SERVER: must be smtps://USER:PASSWORD@HOST:PORT or smtp://…; in a password, %40 is @",
        ),
        (
            {"MAIL_SERVER": "smtps://mail.example"},
            "PARLEY_MAIL_SERVER needs PARLEY_MAIL_FROM, an address, and PARLEY_MAIL_DOMAINS",
        ),
        (
            {"RESEARCH_FEEDS": "https://a.example/feed,/b"},
            "PARLEY_RESEARCH_FEEDS: must begin with http:// or https://, name a host, and hold no space and no @",
        ),
        (
            {"RESEARCH_FEEDS": ",".join(["https://a.example"] * 11)},
            "PARLEY_RESEARCH_FEEDS: must be at most 10",
        ),
        (
            {"RESEARCH_MCP": '[{"name": "wiki", "command": "wiki \\"", "tool": "search"}]'},
            "PARLEY_RESEARCH_MCP[0]['command']: has a quotation mark that is not closed",
        ),
        (
            {"RESEARCH_MCP": f"[{_WIKI}, {_WIKI}]"},
            "PARLEY_RESEARCH_MCP: must not name the same tool of a server twice",
        ),
        (
            {"RESEARCH_NETWORKS": "10.0.0.1/8"},
            "PARLEY_RESEARCH_NETWORKS: must be networks such as 10.1.0.0/16,fd00:1::/32",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(monkeypatch, **variables)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("advertise", "address"),
    [
        ("", ""),
        ("10.0.0.7:9000", "10.0.0.7:9000"),
        ("10.0.0.7", "10.0.0.7:7401"),
        ("replica.example", "replica.example:7401"),
        ("fd00::1", "[fd00::1]:7401"),
        ("[fd00::1]", "[fd00::1]:7401"),
        ("[fd00::1]:9000", "[fd00::1]:9000"),
    ],
)
def test_other_replicas_reach_this_one_at_what_it_advertises_and_at_its_port_without_one(
    monkeypatch: pytest.MonkeyPatch, advertise: str, address: str
) -> None:
    assert load(monkeypatch, ADVERTISE=advertise).resolve_address() == address


def test_nothing_is_read_on_the_web_unless_it_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch).create_web_sources(_read_clock) is None


def test_what_is_read_on_the_web_follows_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(
        monkeypatch,
        RESEARCH_SEARCH="http://searxng:8080",
        RESEARCH_FEEDS="https://a.example/feed,https://b.example/feed",
        RESEARCH_PAGES="true",
        RESEARCH_NETWORKS="10.1.0.0/16",
        RESEARCH_PORTS="443,8443",
    )
    web = settings.create_web_sources(_read_clock)
    assert web is not None
    assert web.feeds == ("https://a.example/feed", "https://b.example/feed")
    assert web.reads_pages
    assert web.fetcher.reach.ports == frozenset({443, 8443})
    assert web.fetcher.reach.allows(ip_address("10.1.2.3"))
    assert not web.fetcher.reach.allows(ip_address("10.2.0.1"))
    # The search service may be inside; what it finds may not.
    assert web.search_fetcher.reach.ports == frozenset({8080})
    assert web.search_fetcher.reach.allows(ip_address("10.2.0.1"))


def test_an_mcp_server_is_started_from_the_path_that_its_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    web = load(monkeypatch, RESEARCH_MCP=f"[{_WIKI}]").create_web_sources(_read_clock)
    assert web is not None
    sh = shutil.which("sh")
    assert sh is not None
    assert web.servers == (ToolServer("wiki", (sh, "-c", "serve --fast; $HOME"), "search", "query"),)


def test_an_mcp_server_whose_program_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    server = '[{"name": "wiki", "command": "no-such-program --fast", "tool": "search"}]'
    with pytest.raises(ConfigurationError, match="the program 'no-such-program' of wiki was not found"):
        load(monkeypatch, RESEARCH_MCP=server).create_web_sources(_read_clock)


def test_research_without_its_libraries_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.orchestrator.settings.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'parley\[research\]'"):
        load(monkeypatch, RESEARCH_PAGES="true").create_web_sources(_read_clock)


def _read_clock() -> datetime:
    return datetime.now(UTC)


def test_hooks_reach_public_hosts_by_tls_and_what_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    channels = load(
        monkeypatch,
        HOOK_HOSTS="hooks.internal,10.1.0.0/16",
        HOOK_FOLDER=str(tmp_path),
        MAIL_SERVER="smtps://me:s3cret@mail.example",
        MAIL_FROM="parley@mail.example",
        MAIL_DOMAINS="Acme.example, other.example",
    ).create_channels(SystemClock())
    reach = channels.sender.reach
    assert (reach.needs_tls, reach.ports) == (True, None)
    assert reach.names_host("hooks.internal")
    assert reach.names_address(ip_address("10.1.2.3"))
    assert not reach.allows(ip_address("10.2.0.1"))
    assert (channels.folder, channels.allows_stdout) == (tmp_path, False)
    assert channels.mail is not None
    assert channels.mail.domains == {"acme.example", "other.example"}
