"""A debate's report as a file that a browser saves."""

import pytest

from parley.edge import reports
from tests.integration.edge.conftest import Edge
from tests.support.scripted_gateway import ScriptedGateway


async def fetch(edge: Edge, debate: str, ending: str) -> tuple[int, dict[str, str], str]:
    async with edge.session.get(f"{edge.url}/v1/debates/{debate}/report.{ending}") as answer:
        return answer.status, dict(answer.headers), await answer.text()


async def test_a_report_is_markdown(edge: Edge) -> None:
    debate = await edge.run_debate()
    status, headers, text = await fetch(edge, debate, "md")
    assert (status, headers["Content-Type"]) == (200, "text/markdown; charset=utf-8")
    assert headers["Content-Disposition"] == f'attachment; filename="{debate}.md"'
    assert text.startswith("# Is water wet?\n")
    assert "## Answer" in text


async def test_a_report_is_one_page_that_runs_nothing(edge: Edge, gateway: ScriptedGateway) -> None:
    gateway.alter = lambda _, text: text.replace("answer", "answer <script>alert(1)</script>")
    debate = await edge.run_debate()
    status, headers, page = await fetch(edge, debate, "html")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert headers["Content-Disposition"] == f'attachment; filename="{debate}.html"'
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert headers["Content-Security-Policy"].endswith("; sandbox")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "<title>Is water wet?</title>" in page
    assert "alert(1)" in page
    assert "<script" not in page


@pytest.mark.parametrize("ending", ["md", "html"])
async def test_a_report_of_a_debate_that_is_not_there_is_an_error_in_json(edge: Edge, ending: str) -> None:
    async with edge.session.get(
        f"{edge.url}/v1/debates/deb-20260101-000000-aaaaaaaa/report.{ending}"
    ) as answer:
        found = await answer.json()
    assert (answer.status, found["code"]) == (404, "not_found")


async def test_a_report_that_is_too_long_for_a_page_says_where_it_is(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_MAX_CHARACTERS", 100)
    debate = await edge.run_debate()
    status, _, text = await fetch(edge, debate, "html")
    assert (status, '"reason":"REPORT_TOO_LARGE"' in text) == (400, True)
    assert "report.md" in text
    assert (await fetch(edge, debate, "md"))[0] == 200
