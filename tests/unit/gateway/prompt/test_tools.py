import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.documents import MAX_RESULT
from parley.gateway.prompt.tools import TOOLS, ToolRequest, ToolResult, describe_use, run_tool
from tests.support.prompt_parts import documents_in, user

NAMES = tuple(TOOLS)
PLAN = "\n".join(f"step {number}: do thing {number}" for number in range(1, 2001))
DOCUMENTS = documents_in(
    [
        user(PLAN, document="docs/plan.md"),
        user("The cache holds naïve entries.\r\nEviction is by age.\n", document="notes.txt"),
        user("x" * 9_000, document="long.json"),
        user("", document="empty.md"),
        user("分散システムでは合意が必要です。", document="日本.md"),
    ]
)
FRAME = re.compile(
    r"\S+, lines \d+ to \d+(?: of \d+)?:|\[More: read on from line \d+\.\]|No passage holds any of these words\."
    r"|The query holds no word to search for\.|\S+ \(\d+ characters, \d+ lines\)"
)


def ask_tool(name: str, **arguments: Any) -> ToolResult:
    return run_tool(DOCUMENTS, NAMES, ToolRequest("1", name, json.dumps(arguments)))


def lines_shown(text: str) -> list[str]:
    return [line.partition(": ")[2] for line in text.splitlines() if re.match(r"\d+: ", line)]


paths = st.sampled_from(["docs/plan.md", "notes.txt", "./notes.txt", "/etc/passwd", "../plan.md", "", "a\0b"])
numbers = st.one_of(st.integers(-5, 2100), st.none(), st.text(max_size=3), st.booleans(), st.floats())
words = st.one_of(
    st.text(max_size=40), st.sampled_from(['thing" OR "x', "NEAR(a b)", "text: *", "cache -age"])
)
arguments = st.one_of(
    st.text(max_size=60),
    st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner, max_size=3)).map(json.dumps),
    st.fixed_dictionaries(
        {}, optional={"path": paths, "first_line": numbers, "last_line": numbers, "query": words}
    ).map(json.dumps),
)


@given(st.one_of(st.sampled_from(NAMES), st.text(max_size=20)), arguments)
def test_whatever_is_asked_only_the_documents_own_text_comes_out_and_it_is_bounded(
    name: str, arguments: str
) -> None:
    request = ToolRequest("1", name, arguments)
    result = run_tool(DOCUMENTS, NAMES, request)
    assert 0 < len(result.text) <= MAX_RESULT
    if result.failed:
        assert "\n" not in result.text
    else:
        own = [
            PLAN,
            "The cache holds naïve entries.",
            "Eviction is by age.",
            "x" * 9_000,
            "分散システムでは合意が必要です。",
        ]
        for line in result.text.splitlines():
            number, mark, shown = line.partition(": ")
            if mark and number.isdigit():
                assert any(shown in text for text in own)
            else:
                assert not line or FRAME.fullmatch(line)
    used = describe_use(request, result)
    assert used.characters == len(result.text)
    assert len(used.arguments) <= 500
    assert 0 < len(used.name) <= 64
    json.loads(request.sayable_arguments)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", request.sayable_name)


def test_a_document_is_read_whole_by_reading_on() -> None:
    for path, text in (("docs/plan.md", PLAN), ("long.json", "x" * 9_000)):
        shown: list[str] = []
        first = 1
        while True:
            result = ask_tool("file_read", path=path, first_line=first)
            shown += lines_shown(result.text)
            more = re.search(r"\[More: read on from line (\d+)\.\]$", result.text)
            if more is None:
                break
            first = int(more.group(1))
        assert "".join(shown) == text.replace("\n", "")


def test_a_range_of_lines_comes_with_its_numbers() -> None:
    read = ask_tool("file_read", path="docs/plan.md", first_line=7, last_line=8)
    assert read.text.splitlines() == [
        "docs/plan.md, lines 7 to 8 of 2000:",
        "7: step 7: do thing 7",
        "8: step 8: do thing 8",
    ]
    assert ask_tool("file_read", path="notes.txt").text.endswith("2: Eviction is by age.")
    assert ask_tool("file_read", path="empty.md").text == "empty.md, lines 1 to 1 of 1:\n1: "


def test_the_list_names_every_document_with_its_size() -> None:
    assert ask_tool("list_files").text.splitlines()[0] == f"docs/plan.md ({len(PLAN)} characters, 2000 lines)"
    many = documents_in([user("", document=f"{number:04}-{'n' * 90}") for number in range(500)])
    listed = run_tool(many, NAMES, ToolRequest("1", "list_files", "")).text
    assert len(listed) <= MAX_RESULT
    shown = len(listed.splitlines()) - 1
    assert listed.endswith(f"… and {500 - shown} more documents.")


def test_a_search_shows_where_the_words_stand() -> None:
    found = ask_tool("context_search", query="how are entries evicted by AGE?")
    assert found.text.startswith("notes.txt, lines 1 to 2:")
    assert "2: Eviction is by age." in found.text
    assert "1777: step 1777: do thing 1777" in ask_tool("context_search", query="1777").text
    assert "notes.txt" in ask_tool("context_search", query="naive").text


def test_a_search_finds_parts_of_words_and_scripts_without_spaces() -> None:
    assert ask_tool("context_search", query="合意").text.startswith("日本.md, lines 1 to 1:")
    assert ask_tool("context_search", query="vict").text.startswith("notes.txt")


@pytest.mark.parametrize(
    "query", ['"', "AND", "cache AND (", "text:cache", "cach*", "^cache", "NOT x", "a\x00b"]
)
def test_words_of_a_query_are_never_its_syntax(query: str) -> None:
    assert not ask_tool("context_search", query=query).failed


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        (
            "file_read",
            '{"path": "notes.md"}',
            "There is no document 'notes.md'. Documents: docs/plan.md, notes.txt",
        ),
        ("file_read", '{"path": "/etc/passwd"}', "There is no document '/etc/passwd'."),
        (
            "file_read",
            '{"path": "notes.txt", "first_line": 9}',
            "notes.txt has lines 1 to 2; there is no line 9.",
        ),
        ("file_read", '{"path": "notes.txt", "first_line": 2, "last_line": 1}', "last_line 1 comes before"),
        ("file_read", '{"path": "notes.txt", "first_line": "2"}', "first_line must be a line number"),
        ("file_read", '{"path": ["notes.txt"]}', "path must be a text"),
        ("file_read", "{}", "path must be a text"),
        ("file_read", '{"path"', "The arguments are not JSON"),
        ("file_read", "[1]", "The arguments are not a JSON object."),
        ("file_read", "[" * 5000, "The arguments are not JSON"),
        ("file_read", '"' + "x" * 9000 + '"', "The arguments have more than 8000 characters."),
        ("context_search", '{"query": " "}', "query must be a text"),
        ("shell", "{}", "There is no tool 'shell'. Tools: context_search, file_read, list_files."),
    ],
)
def test_a_wrong_call_is_answered_with_what_was_wrong_and_what_there_is(
    name: str, arguments: str, told: str
) -> None:
    result = run_tool(DOCUMENTS, NAMES, ToolRequest("1", name, arguments))
    assert result.failed
    assert result.text.startswith(told)


def test_a_tool_that_the_agent_was_not_given_does_not_exist_for_it() -> None:
    result = run_tool(DOCUMENTS, ("file_read",), ToolRequest("1", "list_files", ""))
    assert result == ToolResult("There is no tool 'list_files'. Tools: file_read.", failed=True)
