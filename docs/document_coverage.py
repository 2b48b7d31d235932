"""Write the page of coverage: what the source documents have, and what planner has of it.

python docs/document_coverage.py            writes coverage.md
python docs/document_coverage.py --check    says whether the page is outdated

The rows are in `data/published/coverage.csv`, the documents in `data/published/documents.csv`; the verdicts
of reproduction targets are those that ship. A module `coverage` would hide the package of that name.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from generate import table

from planner.runs.reproduction import Verdict
from planner.runs.shipped_verdicts import load_shipped

DOCS: Final = Path(__file__).parent
PUBLISHED: Final = DOCS.parent / "data" / "published"
PAGE: Final = DOCS / "coverage.md"
CHECK: Final = "--check"
STATUSES: Final = ("done", "partly", "absent")
REPRODUCE: Final = "planner reproduce "


@dataclass(frozen=True, kw_only=True)
class Document:
    """A source document, or a chapter of one.

    key      short name, to which items refer
    targets  targets whose published values are of this document: SYSTEM for all of a system, or SYSTEM/TARGET
    judged   date on which its items were judged, such as 2026-11-30
    version  version of planner that they were judged with
    """

    key: str
    title: str
    reference: str
    targets: tuple[str, ...]
    judged: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """A model, mechanism, table, figure, recommendation or open question of a document.

    place      section, figure or lines of the text
    shown_by   commands, pages, designs, tables, columns, options, metrics and sources that show it
    reason     what is missing or differs, and why
    untargeted ids of published values, or patterns of them, that no target has; `reason` says why
    """

    document: str
    place: str
    item: str
    status: str
    shown_by: tuple[str, ...]
    reason: str
    untargeted: tuple[str, ...]


def read_documents() -> dict[str, Document]:
    """Return the documents by key, in the order of the page."""
    return {
        row["key"]: Document(**{**row, "targets": _split(row["targets"])}) for row in _rows("documents.csv")
    }


def read_items() -> list[Item]:
    """Return all items in the order of the file."""
    return [
        Item(**{**row, "shown_by": _split(row["shown_by"]), "untargeted": _split(row["untargeted"])})
        for row in _rows("coverage.csv")
    ]


def _rows(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


def verdicts(targets: Iterable[str]) -> Counter[str]:
    """Return the number of values of each verdict that ships for targets such as traffic/figure_4."""
    shipped = load_shipped()
    counts: Counter[str] = Counter()
    for target in targets:
        counts.update(shipped[target].reproduction.counts())
    return counts


def page() -> str:
    """Return the page as Markdown."""
    documents, items = read_documents(), read_items()
    lines = [*_introduction(documents.values()), "", "## By document", "", *_overview(documents, items), ""]
    for document in documents.values():
        rows = [_row(item) for item in items if item.document == document.key]
        listed = table(("place", "what the text has", "status", "shown by", "reason"), rows)
        lines += [f"## {document.title}", "", f"{document.reference}", "", *listed, ""]
    return "\n".join(lines)


def _introduction(documents: Iterable[Document]) -> list[str]:
    dates = " and ".join(sorted({document.judged for document in documents}))
    versions = " and ".join(sorted({document.version for document in documents}))
    return [
        "# Coverage of the source documents",
        "",
        "planner implements models and experiments of papers. This page goes through these documents item by",
        "item: a model, a mechanism, a table, a figure, a recommendation or an open question.",
        "",
        "- *done*: a user can run it, or read it, as *shown by* says;",
        "- *partly*: a user has a part of it; the reason says what is missing;",
        "- *absent*: planner does not have it; the reason says why.",
        "",
        "A design is named as `design SYSTEM/NAME`; tables, columns, options, metrics and sources likewise.",
        "`planner list SYSTEM` describes each of them. A reproduced table or figure has the counts of",
        "its verdicts, as [](reproduced.md) explains them. *done* does not mean that all values agree: where",
        "some differ, the reason says so. Places are sections and figures, or lines of the text as",
        "extracted from its PDF.",
        "",
        f"The items were judged on {dates} with planner {versions} and its changes up to that day.",
        "A test checks that everything named here exists, that all published results are in a target or in a",
        "row of this page, and that the verdicts are those that ship.",
    ]


def _overview(documents: Mapping[str, Document], items: Sequence[Item]) -> list[str]:
    """Return a table of the documents with the counts of their items and verdicts."""
    kinds = [str(kind) for kind in Verdict if kind is not Verdict.SHORTENED]
    rows = []
    for key, document in documents.items():
        statuses = Counter(item.status for item in items if item.document == key)
        rows.append((document.title, statuses, verdicts(targets_of(document))))
    total: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for _title, statuses, counts in rows:
        total[0].update(statuses)
        total[1].update(counts)
    return table(
        ("document", *STATUSES, *kinds),
        [
            (title, *(statuses[status] for status in STATUSES), *(counts[kind] or "" for kind in kinds))
            for title, statuses, counts in [*rows, ("all", *total)]
        ],
    )


def targets_of(document: Document) -> list[str]:
    """Return the names of all targets of a document."""
    return [name for name in load_shipped() if {name, name.partition("/")[0]} & set(document.targets)]


def _row(item: Item) -> tuple[str, ...]:
    return (item.place, item.item, item.status, "; ".join(map(_shown, item.shown_by)), item.reason)


def _shown(reference: str) -> str:
    """Return a reference as Markdown: pages as links, targets with the counts of their verdicts."""
    if reference.startswith("docs/"):
        name = reference.removeprefix("docs/")
        return f"[{Path(name).stem}]({name})"
    if reference.startswith(REPRODUCE):
        counts = verdicts([reference.removeprefix(REPRODUCE)])
        text = ", ".join(f"{counts[str(kind)]} {kind}" for kind in Verdict if counts[str(kind)])
        return f"`{reference}` ({text})"
    kind, _, name = reference.partition(" ")
    return f"`{reference}`" if kind == "planner" else f"{kind} `{name}`"


def main(arguments: list[str]) -> int:
    """Write the page, or check it; return 1 where it is outdated."""
    text = re.sub(r"\n{3,}", "\n\n", page())
    if CHECK not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    outdated = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text
    if outdated:
        sys.stdout.write("coverage.md: outdated: python docs/document_coverage.py\n")
    return int(outdated)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
