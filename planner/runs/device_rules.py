"""Rules of switches for a plan, as files of another tool's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.io.file_replacement import replace_text
from planner.runs import evaluation
from planner.runs.files import make_folder
from planner.scenarios.arguments import OneDesign, Source, as_scenario
from planner.scenarios.catalogue import system_names
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.installed_systems import load_system


@dataclass(frozen=True, kw_only=True)
class WrittenRules:
    """Files of rules that were written: of which plan, and their names."""

    plan: str
    files: tuple[str, ...]


def write_rules(
    problem: Source,
    out: str | Path,
    *,
    design: OneDesign | None = None,
    plan: Any = None,
    changes: Mapping[str, Any] | None = None,
) -> WrittenRules:
    """Write the rules of a plan into a folder, in the files that its system makes of it.

    design  that makes the plan; default: as in `solve`
    plan    made elsewhere, or saved by `solve --out`, in place of a design's
    raises  InputError where the system's plans have no rules, the design makes no plan, or a file cannot be
            written
    """
    scenario = as_scenario(problem, changes=changes, designs=design)
    system = scenario.system
    if system.plan.write_rules is None:
        having = ", ".join(name for name in system_names() if load_system(name).plan.write_rules is not None)
        raise InputError(f"{system.name}: its plans are no rules of switches, as those of {having} are")
    if plan is not None and design is not None:
        raise InputError("plan: is given, must be absent where a design is named")
    if plan is None:
        run = evaluation.solve(scenario, design=design)
        made, decided, label = run.problem, run.plan, f"the plan of {run.label}"
        if decided is None:
            raise InputError(
                f"design {run.label}: has no plan ({run.status}), of which rules could be written"
            )
    else:
        made, label = scenario.make_problem(), "the plan"
        decided = plan if hasattr(plan, "to_tables") else take_plan(system, made, plan, "plan")
    texts = system.plan.write_rules(made, decided)
    folder, written = make_folder(Path(out)), []
    for name, text in texts.items():
        plain = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in name)
        while plain in written:
            plain = f"_{plain}"
        replace_text(folder / plain, text)
        written.append(plain)
    return WrittenRules(plan=label, files=tuple(written))
