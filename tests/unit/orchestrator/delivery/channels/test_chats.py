"""Chats over real HTTP: what they show of a text, what they take at most, and that no text of an agent reaches anybody."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from markdown_it import MarkdownIt

from parley.orchestrator.delivery.channels.chat import BODIES, ChatChannel
from parley.orchestrator.delivery.message import DeliveryError
from parley.runtime.clock import SystemClock
from parley.v1.hook_pb2 import ChatTarget
from tests.support.made_messages import SENDER, make_message
from tests.support.web_server import web_server

SLACK, TEAMS = ChatTarget.KIND_SLACK, ChatTarget.KIND_TEAMS
DISCORD, MATTERMOST = ChatTarget.KIND_DISCORD, ChatTarget.KIND_MATTERMOST
LINK = "https://parley.example/debates/deb-1"
HOSTILE = (
    "@everyone @here @channel @all @alice",
    "<!channel> <!here> <!everyone> <!subteam^S1> <@U1> <#C1>",
    "<@123456789012345678> <@&123456789012345678> <#123456789012345678> </run:123456789012345678> <t:0:R> <id:guide>",
    "<https://evil.example|https://bank.example> <mailto:a@evil.example|mail>",
    "[https://bank.example](https://evil.example)",
    "[https://bank.example](<https://evil.example> 'title')",
    "\\[https://bank.example](https://evil.example)",
    "\\[https://bank.example\\](https://evil.example)",
    "\\\\[https://bank.example](https://evil.example)",
    "`[`bank](https://evil.example)",
    "`\\`[bank](https://evil.example)",
    "[bank][1]\n\n[1]: https://evil.example",
    "![x](https://evil.example/pixel.png)",
    "<img src=https://evil.example/pixel.png> <a href=https://evil.example>bank</a> <at>alice</at>",
    "&lt;!channel&gt; &#60;!channel&#62; &lt;@U1&gt;",
    "```\n[a](https://evil.example)\n``` [b](https://evil.example)",
    "||hidden|| a \u202e desrever \u202c and \u200b invisible",
)


def body_of(kind: ChatTarget.Kind.ValueType, text: str, link: str = LINK) -> dict[str, Any]:
    return BODIES[kind](text, [("Open the debate", link)] if link else [])


def strings(part: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a body, with the name it has."""
    if isinstance(part, str):
        yield name, part
    elif isinstance(part, list):
        for each in part:
            yield from strings(each, name)
    elif isinstance(part, dict):
        for key, each in part.items():
            yield from strings(each, key)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def links(text: str) -> list[str]:
    """Where the links and images of a text of Markdown lead, and its HTML, as a parser of CommonMark finds them."""
    parts = [each for block in MarkdownIt().parse(text) for each in (block, *(block.children or []))]
    reaching = [each for each in parts if each.type in {"link_open", "image", "html_inline", "html_block"}]
    return [str(each.attrs.get("href") or each.attrs.get("src") or each.content) for each in reaching]


def remove_escapes(text: str) -> str:
    """A text of Markdown without what stands behind a backslash."""
    return re.sub(r"\\.", "", text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_in_slack_a_text_makes_no_mention_and_no_link(hostile: str) -> None:
    body = body_of(SLACK, f"{hostile}\n\nText: {hostile}")
    *plain, own = body["blocks"]
    assert {each["text"]["type"] for each in plain} == {"plain_text"}, "which knows no mention and no link"
    for each in (*(each["text"]["text"] for each in plain), body["text"]):
        assert not {"<", ">"} & set(each)
        assert "&" not in each.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    assert own["text"] == {"type": "mrkdwn", "text": f"<{LINK}|Open the debate>"}
    assert (body["unfurl_links"], body["unfurl_media"]) == (False, False)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_in_teams_a_text_stands_in_runs_that_know_no_markdown(hostile: str) -> None:
    (attachment,) = body_of(TEAMS, f"{hostile}\n\nText: {hostile}")["attachments"]
    card = attachment["content"]
    assert {each["type"] for each in card["body"]} == {"RichTextBlock"}
    runs = [run for each in card["body"] for run in each["inlines"]]
    assert {run["type"] for run in runs} == {"TextRun"}
    assert not any("selectAction" in run for run in runs)
    assert "msteams" not in card, "mentions need entities there"
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "Open the debate", "url": LINK}]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_in_discord_a_text_mentions_nobody_and_makes_no_link(hostile: str) -> None:
    body = body_of(DISCORD, f"{hostile.splitlines()[0]}\n\nText: {hostile}")
    assert body["allowed_mentions"] == {"parse": []}
    assert "content" not in body
    (embed,) = body["embeds"]
    own = f"[Open the debate]({LINK})"
    for each in (embed["title"], embed["description"].removesuffix(own)):
        assert links(each) == []
        assert not set("<[]|`") & set(remove_escapes(each))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_in_mattermost_a_text_mentions_nobody_and_makes_no_link(hostile: str) -> None:
    text = body_of(MATTERMOST, f"{hostile.splitlines()[0]}\n\nText: {hostile}")["text"]
    assert links(text) == [LINK]
    shown = text.removesuffix(f"[Open the debate](<{LINK}>)")
    assert not set("[]|`") & set(remove_escapes(shown))
    assert not {"<", ">"} & set(shown)
    assert "@" not in shown.replace("@\u200b", "")


@pytest.mark.parametrize("kind", list(BODIES), ids=ChatTarget.Kind.Name)
def test_no_text_hides_or_turns_anything(kind: ChatTarget.Kind.ValueType) -> None:
    shown = "".join(each for _, each in strings(body_of(kind, "a\u202eb\u200bc\x1b[31md\n\ne\u2066f\x00g")))
    assert not {"\u202e", "\x1b", "\u2066", "\x00"} & set(shown)
    assert "abc" in shown


LONG = {
    "plain": "x" * 3_000,
    "escaped": "<" * 3_000,
    "brackets": "[" * 3_000,
    "mentions": "@" * 3_000,
    "astral": "\U0001f600" * 3_000,
    "wide": "\u6f22" * 3_000,
    "lines": "line\n" * 600,
    "quotes": '"' * 3_000,
    "paragraphs": "\n\n".join(["Why a cache helps: it holds what is read often & changes rarely."] * 46),
}


@pytest.mark.parametrize("text", [*LONG.values(), *(each * 40 for each in LONG.values())])
def test_a_text_of_any_length_is_cut_to_what_each_chat_takes(text: str) -> None:
    whole = f"{text}\n\n{text}"
    slack = body_of(SLACK, whole)
    for block in slack["blocks"]:
        assert 0 < units(block["text"]["text"]) <= (150 if block["type"] == "header" else 3_000)
    (embed,) = body_of(DISCORD, whole)["embeds"]
    assert units(embed["title"]) <= 256
    assert units(embed["description"]) <= 4_096
    assert units(body_of(MATTERMOST, whole)["text"]) <= 4_000
    assert len(json.dumps(body_of(TEAMS, whole), ensure_ascii=False).encode()) <= 21_000
    if units(text) > 4_096:
        assert embed["description"].endswith(f"…\n\n[Open the debate]({LINK})")


@pytest.mark.parametrize("kind", list(BODIES), ids=ChatTarget.Kind.Name)
def test_a_text_of_3000_characters_is_shown_with_its_title_and_its_end(
    kind: ChatTarget.Kind.ValueType,
) -> None:
    text = "Should we shard?\n\n" + "word " * 596 + "the end."
    shown = "".join(each for _, each in strings(body_of(kind, text)))
    assert "Should we shard?" in shown
    assert "the end." in shown


@pytest.mark.parametrize("kind", list(BODIES), ids=ChatTarget.Kind.Name)
def test_a_text_without_lines_or_link_is_a_body_too(kind: ChatTarget.Kind.ValueType) -> None:
    named = dict(strings(body_of(kind, "Only a title", "")))
    assert "Only a title" in "".join(named.values())
    assert "" not in named.values(), "some chats refuse it"
    assert "https://parley" not in "".join(named.values())


@pytest.mark.parametrize("kind", list(BODIES), ids=ChatTarget.Kind.Name)
def test_links_that_answer_stand_beside_the_one_to_the_debate(kind: ChatTarget.Kind.ValueType) -> None:
    approve = "https://parley.example/links/a_b-c.d_e-f"
    message = make_message(text="It waits\n\n" + "x" * 9_000, link=LINK, answers=[("Approve", approve)])
    body = json.dumps(BODIES[kind](message.text, message.links))
    for each in (LINK, approve, "Open the debate", "Approve"):
        assert each in body


async def test_a_chat_is_sent_its_body_as_json() -> None:
    seen: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.Response(text="ok")

    async with web_server(handle, method="POST") as url:
        message = make_message(text="Größe?\n\nJa.")
        await ChatChannel(SENDER, SystemClock(), url, SLACK).send(message)
    assert seen == [BODIES[SLACK](message.text, message.links)]


async def test_a_chat_that_is_gone_is_said_to_be() -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=410, text="channel_is_archived")

    async with web_server(handle, method="POST") as url:
        with pytest.raises(DeliveryError) as failed:
            await ChatChannel(SENDER, SystemClock(), url, SLACK).send(make_message())
    assert failed.value.permanent
