"""A report as one HTML file in a browser: it stands by itself, on a narrow screen too, and asks nothing of anybody."""

from pathlib import Path

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser

from parley.runtime.html_page import render_page

REPORT = f"""# Which broker?

- **Decision:** one, for now

| agent | said | of |
|---|---|---|
| ada | {"word " * 60} | {"x" * 5_000} |

> {"long" * 10_000} <script>document.title = "run"</script> ![x](https://evil.example/pixel.png)

```
{"code " * 100}
```
"""


async def test_a_report_is_read_by_everybody_and_fetches_nothing(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(render_page(REPORT))
    # Past the page's own policy, since `axe` is a script.
    context = await browser.new_context(viewport={"width": 375, "height": 800}, bypass_csp=True)
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto((tmp_path / "report.html").as_uri())
    assert await page.title() == "Which broker?"
    assert await page.evaluate("document.documentElement.scrollWidth") == 375
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        assert (await Axe().run(page)).response["violations"] == []
    assert len(asked) == 1
    await context.close()
