"""The pages of the documentation as a site reads them: `make docs` runs this, then the generator.

The pages of `docs/` and those at the root come along under their own paths; README is the first one. A link to a page that is on the site
leads there; a link to another file of the repository becomes its text, as the site has no such file. A link to nothing is refused.
"""

import re
import shutil
import sys
from functools import cache
from pathlib import Path
from posixpath import normpath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BESIDE: Final = (
    "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "THIRD_PARTY.md", "docker/README.md", "k8s/README.md",
)  # fmt: skip
"""Pages outside of `docs/`."""
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def list_pages(root: Path = ROOT) -> dict[str, str]:
    """Return where each page of the repository is on the site, by its path from the root."""
    pages = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")}
    return {each: _place(each) for each in sorted(pages | set(_BESIDE)) if (root / each).is_file()}


def _place(page: str) -> str:
    if page == "README.md":
        return "index.md"
    folder, _, name = page.removeprefix("docs/").rpartition("/")
    # A folder's own page is its index.
    name = "index.md" if name == "README.md" else name
    return f"{folder}/{name}" if folder else (f"project/{name}" if "/" not in page else name)


def write_pages(folder: Path, root: Path = ROOT) -> list[str]:
    """Write the pages into an empty folder, and return a line for each link that leads nowhere."""
    places, lost = list_pages(root), []
    for page, place in places.items():
        text, broken = _with_links(page, (root / page).read_text(encoding="utf-8"), places, root)
        lost += [f"{page}: links to {each}, which is not there" for each in broken]
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    for picture in (*(root / "docs").rglob("*.svg"), *(root / "docs").rglob("*.png")):
        target = folder / picture.relative_to(root / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target)
    return lost


def _with_links(page: str, text: str, places: dict[str, str], root: Path) -> tuple[str, list[str]]:
    """Return a page's text with its links as the site needs them, and what is linked to and not there."""
    broken: list[str] = []
    folder, _, _ = page.rpartition("/")

    def change(found: re.Match[str]) -> str:
        mark, words, link = found.groups()
        if re.match(r"[a-z]+:", link):
            return found[0]
        path, _, anchor = link.partition("#")
        target = normpath(f"{folder}/{path}" if folder else path) if path else page
        if not (root / target).exists() or (anchor and anchor not in _list_anchors(root / target)):
            broken.append(link)
            return found[0]
        if not path:
            return found[0]
        index = f"{target}/README.md"
        place = places.get(target) or places.get(index) or (target.removeprefix("docs/") if mark else "")
        if not place:
            return str(words)
        relative = _relative(place, places[page])
        return f"{mark}[{words}]({relative}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [_LINK.sub(change, each) for each in parts[::2]]
    return "".join(parts), broken


@cache
def _list_anchors(page: Path) -> set[str]:
    """Return what a page's headings are called in links, as GitHub and the site's generator make it of them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", each).strip().lower()) for each in titles}


def _relative(target: str, page: str) -> str:
    up = page.count("/")
    return f"{'../' * up}{target}"


def main(folder: Path) -> None:
    """Write the pages; or exit with a line for each link to nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    if lost := write_pages(folder):
        sys.exit("\n".join(lost))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
