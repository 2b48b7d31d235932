"""Draw the gallery: for each system one question, one picture and one command, from runs of the product.

python docs/gallery.py [SYSTEM...]     writes gallery.md and pictures/gallery/; default: all systems
python docs/gallery.py --check         says which of them are not what the product draws now
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

import planner
from planner.contract.system import Area, System
from planner.reports.drawing_svg import drawing_svg, has_svg
from planner.reports.svg import FONT
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.commands import command_line
from planner.scenarios.shipped import scenario_title

DOCS: Final = Path(__file__).parent
PAGE: Final = "gallery.md"
FOLDER: Final = "pictures/gallery"
WIDTH: Final = 900
FIRST: Final = "traffic"
"""System that the page begins with."""
CHECK: Final = "--check"


@dataclass(frozen=True)
class Example:
    """What the gallery shows of a system.

    design  "" for the scenario's best
    """

    scenario: str
    design: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)


EXAMPLES: Final = {
    "analytics": Example("analytics/own_data"),
    "brokering": Example("brokering/own_data"),
    "capacity": Example("capacity/own_data"),
    "cdnrouting": Example("cdnrouting/abilene", "joint"),
    "membership": Example("membership/regions_etcd", "planned"),
    "circuitflows": Example("circuitflows/own_data"),
    "circuits": Example("circuits/shuffle", "solstice"),
    "coflows": Example("coflows/own_data"),
    "consolidation": Example("consolidation/own_data", "patterns"),
    "contracts": Example("contracts/own_data"),
    "fairshare": Example("fairshare/own_data"),
    "flowtables": Example("flowtables/own_data"),
    "geostore": Example("geostore/own_data"),
    "livevideo": Example("livevideo/session_window", "cdn"),
    "multicast": Example("multicast/own_data"),
    "queries": Example("queries/own_data"),
    "rotors": Example("rotors/own_data"),
    "topology": Example("topology/own_data"),
    "traffic": Example("traffic/germany50", "ecmp", {"problem.fail_links": ["Koblenz<->Koeln"]}),
    "updates": Example("updates/diamond", "ordered"),
}


def draw(name: str) -> tuple[str, str]:
    """Return the section of a system, and its picture as SVG text.

    raises  LookupError where the plan has no picture
    """
    example, system = EXAMPLES[name], find_system(name)
    scenario = planner.load(example.scenario, changes=dict(example.changes))
    run = planner.solve(scenario, design=example.design or None)
    drawings = system.plan.draw(run.problem, run.plan) if system.plan.draw and run.plan else ()
    picture = next(filter(has_svg, drawings), None)
    if picture is None:
        raise LookupError(f"{example.scenario}: the plan has no picture")
    svg = drawing_svg(picture, WIDTH, title=True)
    # an image has no font of its page, and that of printed charts may not be there
    svg = re.sub(r'font-family="[^"]*"', f'font-family="{FONT}"', svg, count=1)
    return _section(system, example, run.titled().verdict), svg


def _section(system: System, example: Example, verdict: str) -> str:
    command = command_line(example.scenario, example.changes).replace("compare", "solve", 1)
    if example.design:
        command += f" --design {example.design}"
    lines = [
        f"### {system.label}",
        f"**{system.question}** [{scenario_title(example.scenario)}](systems/{system.name}.md)",
        f"![{system.label}: {scenario_title(example.scenario)}]({FOLDER}/{system.name}.svg)",
        f"```sh\n{command}\n```",
        verdict,
    ]
    return "\n\n".join(lines)


def page(sections: Mapping[str, str]) -> str:
    """Return the gallery as Markdown: the systems by their area."""
    lines = [
        "# Gallery",
        "One question, one picture and one command for each system.",
    ]
    for area in get_args(Area):
        systems = [find_system(name) for name in sections if find_system(name).area == area]
        systems.sort(key=lambda system: (system.name != FIRST, system.label))
        if systems:
            lines += [f"## {area.capitalize()}", *(sections[system.name] for system in systems)]
    return "\n\n".join(lines) + "\n"


def write(folder: Path, names: Sequence[str]) -> None:
    """Write the gallery into a folder; sections of systems that are not named stay as they are there."""
    present = dict(_read_sections(DOCS / PAGE))
    pictures = folder / FOLDER
    pictures.mkdir(parents=True, exist_ok=True)
    for name in names:
        present[name], svg = draw(name)
        (pictures / f"{name}.svg").write_text(svg, encoding="utf-8")
    (folder / PAGE).write_text(page({name: present[name] for name in EXAMPLES}), encoding="utf-8")


def _read_sections(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the sections of a written gallery by system."""
    if not path.is_file():
        return
    by_label = {find_system(name).label: name for name in system_names()}
    text = path.read_text(encoding="utf-8")
    for part in text.split("\n### ")[1:]:
        label = part.partition("\n")[0]
        if label in by_label:
            yield by_label[label], "### " + part.partition("\n## ")[0].strip()


def stale(names: Sequence[str]) -> list[str]:
    """Return the systems with an outdated section or picture."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), names)
        sections = [dict(_read_sections(root / PAGE)) for root in (DOCS, Path(folder))]
        pictures = [root / FOLDER for root in (DOCS, Path(folder))]
        return [name for name in names if _differs(name, sections, pictures)]


def _differs(name: str, sections: Sequence[Mapping[str, str]], pictures: Sequence[Path]) -> bool:
    before, now = (section.get(name) for section in sections)
    drawn = [path.read_bytes() if (path := folder / f"{name}.svg").is_file() else b"" for folder in pictures]
    return before != now or drawn[0] != drawn[1]


def main(arguments: list[str]) -> int:
    """Write the gallery, or check it; return 1 where it is stale."""
    names = [name for name in arguments if name != CHECK] or list(EXAMPLES)
    if CHECK not in arguments:
        write(DOCS, names)
        return 0
    old = stale(names)
    sys.stdout.write("".join(f"{name}: stale: python docs/gallery.py {name}\n" for name in old))
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
