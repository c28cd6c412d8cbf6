"""Links of the README and of docs/ lead somewhere, and the menu of the site has every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {ROOT / "docs" / "reference" / name for name in ("commands.md", "config.md")}
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a page's headings are called in links to them, as code hosts make them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_doc_links_and_anchors_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text("utf-8")))
    for link in links:
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists() or target in GENERATED, f"{page.name}: {link}"
        if anchor and target not in GENERATED:
            assert anchor in anchors(target), f"{page.name}: {link}"


def test_doc_navigation_lists_every_page_once() -> None:
    """`mkdocs build --strict` says so, too, where mkdocs is installed."""
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"([\w/-]+\.md)$", menu, re.MULTILINE)
    pages = [*PAGES[1:], *GENERATED]
    assert sorted(named) == sorted(str(p.relative_to(ROOT / "docs")) for p in pages)


def test_readme_is_short_and_names_the_make_targets() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 80 and "make demo" in text and "make test" in text


def test_papers_page_names_existing_files() -> None:
    text = (ROOT / "docs" / "reference" / "papers.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 40 and not [name for name in named if not (ROOT / name).is_file()]
