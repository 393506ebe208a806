"""The pages of the documentation: each link leads somewhere, in the repository and on the site that `make docs` builds."""

from pathlib import Path

from tests.support.site import list_pages, write_pages


def test_every_link_of_every_page_leads_to_a_file_and_a_heading_of_it(tmp_path: Path) -> None:
    assert write_pages(tmp_path) == []
    assert {"index.md", "guides/cli.md", "architecture/index.md", "project/THIRD_PARTY.md"} <= {
        each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*.md")
    }
    assert (tmp_path / "demo.svg").exists()


def test_links_lead_to_pages_of_the_site_and_what_the_site_has_not_is_text(tmp_path: Path) -> None:
    root, site = tmp_path / "root", tmp_path / "site"
    (root / "docs" / "guides").mkdir(parents=True)
    (root / "LICENSE").touch()
    (root / "README.md").write_text(
        "[guide](docs/guides/a.md#part) [all](docs/guides) [licence](LICENSE) [far](https://example.org)"
    )
    (root / "docs" / "guides" / "README.md").write_text("# Here\n[start](../../README.md) [here](#here)\n")
    (root / "docs" / "guides" / "a.md").write_text(
        "## `Part`\n```\n[kept](nowhere.md)\n```\n[gone](b.md) [no part](README.md#there)\n"
    )
    assert write_pages(site, root) == [
        "docs/guides/a.md: links to b.md, which is not there",
        "docs/guides/a.md: links to README.md#there, which is not there",
    ]
    assert list_pages(root)["docs/guides/README.md"] == "guides/index.md"
    assert (site / "index.md").read_text() == (
        "[guide](guides/a.md#part) [all](guides/index.md) licence [far](https://example.org)"
    )
    assert (site / "guides" / "index.md").read_text() == "# Here\n[start](../index.md) [here](#here)\n"
