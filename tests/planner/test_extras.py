"""Optional packages: the base solves and compares without them, and a feature says which one it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import (
    PackageNotFoundError,
    distribution,
    distributions,
    packages_distributions,
    requires,
)
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from planner import extras
from planner.scenarios.catalogue import find_system, system_names
from tests.commercial_solvers import PACKAGES

MODULES_OF_EXTRAS = {
    "charts": ("plotly",),
    "dashboard": ("streamlit", "pebble"),
    "cluster": ("distributed", "dask"),
    "documents": ("typst", "pptx"),
    "pyomo": ("pyomo",),
    "pictures": ("kaleido",),
    "scip": ("pyscipopt",),
    "partition": ("mtkahypar",),
    **{extra: (module,) for extra, module in PACKAGES.items()},
}
WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in not_in_the_base:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

not_in_the_base = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Missing())
from planner.cli.application import run
sys.argv = ["planner", *sys.argv[1:]]
run()
"""


@cache
def modules_outside_the_base() -> frozenset[str]:
    """The installed top-level modules that come with no package that the base needs."""
    needed, new = set[str](), {"coordination-planner"}
    while new:
        needed |= new
        lines = [Requirement(line) for name in new for line in requires(name) or []]
        new = {
            canonicalize_name(line.name)
            for line in lines
            if not line.marker or line.marker.evaluate({"extra": ""})
        }
        new = {name for name in new - needed if is_installed(name)}
    owners = {**modules_of_single_files(), **packages_distributions()}
    return frozenset(
        module for module, names in owners.items() if needed.isdisjoint(map(canonicalize_name, names))
    )


def modules_of_single_files() -> dict[str, list[str]]:
    """The compiled modules that are no packages, which Python 3.11 does not map to their distributions."""
    return {
        path.name.partition(".")[0]: [installed.metadata["Name"]]
        for installed in distributions()
        for path in installed.files or ()
        if len(path.parts) == 1 and path.suffix in (".so", ".pyd")
    }


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def planner_without_extras(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that has the packages of the base only."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, ",".join(modules_outside_the_base()), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PLANNER_DEBUG": "1"},
        timeout=300,
    )


@pytest.mark.parametrize(
    ("module", "extra"), [(name, extra) for extra, names in MODULES_OF_EXTRAS.items() for name in names]
)
def test_an_optional_package_belongs_to_an_extra(module: str, extra: str) -> None:
    assert extras.extra_of(module) == extra


def test_a_package_of_the_base_belongs_to_none() -> None:
    assert [extras.extra_of(name) for name in ("pandas", "highspy", "pytest", "nothing_of_the_kind")] == [
        None
    ] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        name if name == "traffic" else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in system_names()
    ],
)
def test_the_base_compares_generated_problems(system: str, tmp_path: Path) -> None:
    made = planner_without_extras("generate", system, "--out", tmp_path / "mine")
    assert made.returncode == 0, made.stderr
    designs = [design.name for design in find_system(system).designs][:2]
    result = planner_without_extras(
        *("compare", tmp_path / "mine" / "scenario.toml", "--designs", ",".join(designs)),
        *("--time-limit", 20, "--html", tmp_path / "page.html", "--json"),
    )
    assert result.returncode in (0, 4), result.stderr
    assert [run["design"] for run in json.loads(result.stdout)["runs"]] == designs
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Charts are pictures: an interactive chart needs the package" in page
    assert "<svg" in page


def test_no_optional_package_is_in_the_base() -> None:
    assert modules_outside_the_base() >= {"pytest", "click"}
    optional = {name for names in MODULES_OF_EXTRAS.values() for name in names} - set(PACKAGES.values())
    assert modules_outside_the_base() >= optional
    assert modules_outside_the_base().isdisjoint({"numpy", "typer", "planner", "highspy", "pyarrow"})


def test_the_base_answers_the_first_commands(tmp_path: Path) -> None:
    """As `make demo` does, without any package that the base does not need."""
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,5\n")
    written = planner_without_extras("new", "scenario", tmp_path, "--out", tmp_path / "scenario.toml")
    assert written.returncode == 0, written.stderr
    solved = planner_without_extras("solve", tmp_path / "scenario.toml", "--html", tmp_path / "page.html")
    assert solved.returncode == 0, solved.stderr
    assert "Charts are pictures" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "feature", "module", "extra"),
    [
        (("dashboard", "--no-browser"), "the dashboard", "pebble", "dashboard"),
        (("solve", "traffic/abilene", "--backend", "pyomo:highs"), "backend 'pyomo'", "pyomo", "pyomo"),
        (("solve", "traffic/abilene", "--backend", "scip"), "backend 'scip'", "pyscipopt", "scip"),
        (
            ("sweep", "traffic/abilene", "--out", "{}/store", "--cluster", "tcp://127.0.0.1:1"),
            "a cluster",
            "dask",
            "cluster",
        ),
        (("compare", "traffic/abilene", "--pictures", "{}/p"), "a picture", "kaleido", "pictures"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_missing_package_is_named_in_one_line(
    arguments: tuple[str, ...], feature: str, module: str, extra: str, tmp_path: Path
) -> None:
    result = planner_without_extras(*(text.replace("{}", str(tmp_path)) for text in arguments))
    advice = f"pip install 'coordination-planner[{extra}]'"
    needed = f"{feature} needs the package '{module}', which is not installed: {advice}"
    assert result.stderr.splitlines()[-1] == needed
    assert result.returncode == 1
