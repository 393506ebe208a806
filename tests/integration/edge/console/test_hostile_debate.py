"""A debate whose agents write to break the page: no script runs, the policy is not breached, and nothing leaves its place."""

import json

from playwright.async_api import Page, expect

from parley.v1 import debate_pb2
from tests.integration.edge.conftest import Edge
from tests.support.scripted_gateway import ScriptedGateway

ATTACK = (
    "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'>"
    "<svg onload='window.attacked = 1'></svg><iframe srcdoc='<script>parent.attacked = 1</script>'></iframe>"
    "<style>* { display: none }</style><base href='https://evil.example/'>"
    "[click](javascript:window.attacked=1) [data](data:text/html,<script>alert(1)</script>) ![p](https://evil.example/p.png)\n\n"
    "</article></main><h1>Signed out</h1><form action='https://evil.example'><input name=key></form>\n\n"
    "\x1b[2J\x1b]0;title\x07 \u202egnp.exe\u202c \u2066hidden\u2069 \u200b" + "W" * 100_000
)
_CLICK_LINKS = """
for (const each of document.querySelectorAll(".text a")) each.click();
"""


async def test_it_runs_no_script_and_breaks_no_layout(
    page: Page, edge: Edge, gateway: ScriptedGateway
) -> None:
    gateway.text = lambda _step, agent: f"{ATTACK}\nPosition: {agent} {ATTACK[:200]}"
    gateway.critic = lambda _step, _agent: json.dumps(
        {
            "issues": [{"issue": ATTACK[:4000], "severity": 7, "suggestion": ATTACK[:4000]}],
            "agrees": False,
            "remarks": ATTACK[:4000],
        }
    )
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    status, answer = await edge.post(
        "CreateDebate",
        {
            "requestId": "hostile",
            "spec": {
                "question": ATTACK[:3000],
                "panel": {"rounds": 1},
                "historyLimit": 0,
                "labels": {"team": "<b>"},
            },
        },
    )
    assert status == 200, answer
    debate = str(answer["debateId"])
    await edge.orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    for path in ("/", f"/debates/{debate}", f"/debates/{debate}/result"):
        await page.goto(path)
        await expect(page.get_by_text("window.attacked").first).to_be_attached()
        if path.endswith("result"):
            await page.get_by_text("Round 1 of 1").click()
            await expect(page.locator(".text:not(.streams)").first).to_be_visible()
        assert await page.evaluate("window.attacked") is None
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        await expect(page.get_by_role("heading", name="Signed out", exact=True)).to_have_count(0)
        assert (
            await page.locator(
                "main iframe, main script, main style, main base, main form input[name=key]"
            ).count()
            == 0
        )
        assert "\u202e" not in await page.locator("main").inner_text()
    await page.evaluate(_CLICK_LINKS)
    assert await page.evaluate("window.attacked") is None
    assert [each for each in requests if "evil.example" in each] == []
