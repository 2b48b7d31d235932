"""Optional packages: the base solves and compares without them, and a feature says which one it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner import extras
from planner.scenarios.catalogue import find_system, system_names

MODULES_OF_EXTRAS = {
    "dashboard": ("streamlit", "pebble"),
    "cluster": ("distributed", "dask"),
    "documents": ("typst", "pptx"),
    "pyomo": ("pyomo",),
    "pictures": ("kaleido",),
    "scip": ("pyscipopt",),
}
WITHOUT_EXTRAS = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {[name for names in MODULES_OF_EXTRAS.values() for name in names]!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from planner.cli.application import run
sys.argv = ["planner", *sys.argv[1:]]
run()
"""


def planner_without_extras(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process in which every optional package is missing."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *map(str, arguments)],
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
        name
        if name in ("brokering", "capacity", "traffic")
        else pytest.param(name, marks=pytest.mark.exhaustive)
        for name in system_names()
    ],
)
def test_the_base_compares_generated_problems(system: str, tmp_path: Path) -> None:
    made = planner_without_extras("generate", system, "--out", tmp_path / "mine")
    assert made.returncode == 0, made.stderr
    designs = [one.name for one in find_system(system).designs][:2]
    done = planner_without_extras(
        *("compare", tmp_path / "mine" / "scenario.toml", "--designs", ",".join(designs)),
        *("--time-limit", 20, "--html", tmp_path / "page.html", "--json"),
    )
    assert done.returncode in (0, 4), done.stderr
    assert [run["design"] for run in json.loads(done.stdout)["runs"]] == designs
    assert (tmp_path / "page.html").stat().st_size > 10_000


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
    done = planner_without_extras(*(text.replace("{}", str(tmp_path)) for text in arguments))
    advice = f"pip install 'coordination-planner[{extra}]'"
    needed = f"{feature} needs the package '{module}', which is not installed: {advice}"
    assert done.stderr.splitlines()[-1] == needed
    assert done.returncode == 1
