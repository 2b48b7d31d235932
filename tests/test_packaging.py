"""Installed packages: every package listed, nothing heavy at import, the wheel alone works."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from benchmarks.imports import statements
from planner.extras import USERS_EXTRAS
from tests.commercial_solvers import PACKAGES

ROOT = Path(__file__).parent.parent
PARTS = {"llvmlite": "numba", "pydantic_core": "pydantic", "markupsafe": "jinja2", "dask": "distributed"}
"""Modules of packages that come as parts of a declared one, whose documentation names them."""
OWN = {"planner", "planner_models", "planner_data", "planner_dashboard"}
HEAVY = (
    "pandas",
    "numpy",
    "scipy",
    "highspy",
    "ortools",
    "pyomo",
    "pyscipopt",
    "networkx",
    "numba",
    "streamlit",
)


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def required_names(text: str) -> set[str]:
    """Return the packages that a list of requirements in setup.cfg names."""
    lines = [line.strip() for line in text.splitlines()]
    return {re.split(r"[<>=\[; ]", line)[0] for line in lines if line and not line.startswith("#")}


def source_packages() -> set[str]:
    """Every folder with an __init__.py under the source roots."""
    result = set()
    for root, prefix in (
        (ROOT / "planner", "planner"),
        (ROOT / "models" / "planner_models", "planner_models"),
        (ROOT / "dashboards" / "planner_dashboard", "planner_dashboard"),
    ):
        for path in root.rglob("__init__.py"):
            result.add(".".join([prefix, *path.parent.relative_to(root).parts]))
    return result | {"planner_data"}


def test_every_package_is_listed() -> None:
    assert set(setup()["options"]["packages"].split()) == source_packages()


def test_every_file_that_code_reads_is_installed() -> None:
    """Templates, styles and scripts beside modules are package data."""
    listed = setup()["options.package_data"]
    missing = []
    for package in source_packages() - {"planner_data"}:
        folder = Path(str(import_module(package).__file__)).parent
        patterns = listed.get(package, "").split()
        files = [path for path in folder.iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")]
        missing += [
            f"{package}: {path.name}"
            for path in files
            if not any(path.match(pattern) for pattern in patterns)
        ]
    assert not missing


def test_every_entry_point_leads_somewhere() -> None:
    for group in ("console_scripts", "planner.systems", "planner.backends"):
        for line in setup()["options.entry_points"][group].strip().splitlines():
            module, _, name = line.partition("=")[2].strip().partition(":")
            assert hasattr(import_module(module), name)


def modules() -> list[str]:
    """Every module of the engine, and the packages beside it, whose modules come with them."""
    result = source_packages()
    for path in (ROOT / "planner").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        result.add(".".join(parts).removesuffix(".__init__"))
    return sorted(result)


def run(code: str, folder: Path | None = None) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_planner_loads_nothing_heavy() -> None:
    assert run(f"import sys, planner; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


def test_the_command_line_loads_nothing_heavy_for_help() -> None:
    code = f"""
import sys
from planner.cli import main
sys.argv = ["planner", "--help"]
try:
    main()
except SystemExit:
    pass
print([m for m in {HEAVY} if m in sys.modules])
"""
    assert run(code).splitlines()[-1] == "[]"


def test_systems_load_no_solver_and_nothing_slow() -> None:
    """So that `planner list`, which loads all of them, answers soon."""
    late = (
        "highspy",
        "ortools",
        "pyomo",
        "pyscipopt",
        "networkx",
        "plotly",
        "scipy.cluster",
        "scipy.optimize",
    )
    code = f"""
import sys
from planner.scenarios.catalogue import find_system, system_names
for name in system_names():
    find_system(name)
print([m for m in {late} if m in sys.modules])
"""
    assert run(code) == "[]"


def test_systems_reserve_little_memory() -> None:
    """So that the dashboard's workers, which load all of them, have their memory for questions.

    A table of texts that a module makes when it is loaded reserves a gigabyte.
    """
    code = """
from planner.scenarios.catalogue import find_system, system_names
for name in system_names():
    find_system(name)
with open("/proc/self/status") as status:
    print([int(line.split()[1]) for line in status if line.startswith("VmData:")][0])
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not tell the memory of a process")
    assert int(run(code)) < 700_000, "kB"


@pytest.mark.exhaustive
def test_every_module_imports_alone() -> None:
    """Without circles of imports, which tests/benchmarks/test_imports.py shows, any module may be first."""
    code = """
import importlib, subprocess, sys
for name in sys.argv[1:]:
    kept = set(sys.modules)
    importlib.import_module(name)
    for module in [m for m in sys.modules if m.split(".")[0] in ("planner", "planner_models")]:
        del sys.modules[module]
"""
    commercial = {f"planner.backends.{name}" for name in PACKAGES}
    names = [name for name in modules() if name not in commercial]  # their packages need a licence
    result = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_no_name_in_a_package_hides_one_of_its_modules() -> None:
    """`from package.module import module` in a package would make `package.module` something else."""
    code = """
import importlib, sys, types
for name in sys.argv[1:]:
    importlib.import_module(name)
for name in sys.argv[1:]:
    package, _, module = name.rpartition(".")
    if package and not isinstance(getattr(sys.modules[package], module), types.ModuleType):
        print(name)
"""
    commercial = {f"planner.backends.{name}" for name in PACKAGES}
    paths = [*(ROOT / "planner").rglob("*.py"), *(ROOT / "models" / "planner_models").rglob("*.py")]
    dotted = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    names = [name.removeprefix("models.").removesuffix(".__init__") for name in dotted]
    names = [name for name in names if name not in commercial and not name.endswith("__main__")]
    assert len(names) > 500
    result = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert (result.stdout, result.returncode) == ("", 0), result.stderr


def test_the_engine_knows_no_system() -> None:
    for path in (ROOT / "planner").rglob("*.py"):
        assert "planner_models" not in path.read_text(), path


@pytest.mark.slow
def test_the_wheel_alone_solves_a_users_own_tables(tmp_path: Path) -> None:
    """Installed without the sources, from a folder that holds a models.py of the user's own."""
    wheels = tmp_path / "wheels"
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(wheels),
        str(ROOT),
    ]
    result = subprocess.run(build, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    site = tmp_path / "site"
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        wheel.extractall(site)
        assert {
            name.split("/")[0] for name in wheel.namelist() if not name.split("/")[0].endswith("-info")
        } == {
            "planner",
            "planner_models",
            "planner_data",
            "planner_dashboard",
        }
    home = tmp_path / "home"
    home.mkdir()
    (home / "models.py").write_text("raise RuntimeError('the user\\'s own')")
    (home / "links.csv").write_text("tail,head,capacity_mbps\na,b,10\n")
    (home / "demands.csv").write_text("source,target,rate_mbps\na,b,5\n")
    (home / "s.toml").write_text('system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n')
    code = f"""
import sys
sys.path.insert(0, {str(site)!r})
import planner
assert planner.__file__.startswith({str(site)!r})
from planner.cli import main
main()
"""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    for scenario, nodes in (("s.toml", 2), ("traffic/abilene", 12)):
        words = [sys.executable, "-c", code, "solve", scenario, "--json"]
        result = subprocess.run(words, capture_output=True, text=True, cwd=home, env=environment, check=False)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["problem"]["size"]["nodes"] == nodes


def imported_packages(path: Path) -> set[str]:
    """Return the top-level modules that a file imports, wherever in it."""
    result = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            result |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            result.add(node.module.partition(".")[0])
    return result


def test_every_package_that_code_imports_is_declared() -> None:
    """A package that only another one brings is gone when that one no longer needs it."""
    lists = [setup()["options"]["install_requires"], *setup()["options.extras_require"].values()]
    declared = {canonicalize_name(name) for text in lists for name in required_names(text)}
    owners = packages_distributions()
    undeclared = set()
    for package in ("planner", "models/planner_models", "dashboards/planner_dashboard"):
        for path in (ROOT / package).rglob("*.py"):
            for module in imported_packages(path) - set(sys.stdlib_module_names) - OWN:
                names = {canonicalize_name(name) for name in owners.get(module, [module])}
                if declared.isdisjoint(names):
                    undeclared.add(module)
    assert undeclared == PARTS.keys()
    assert declared >= set(PARTS.values())


def test_every_dependency_has_its_licence_listed() -> None:
    listed = {
        line.split("|")[1].strip()
        for line in (ROOT / "docs" / "licenses.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| package")
    }
    optional = [setup()["options.extras_require"][extra] for extra in USERS_EXTRAS]
    required = {
        name for text in [setup()["options"]["install_requires"], *optional] for name in required_names(text)
    }
    assert listed == required


def pinned_in(lock: str) -> dict[str, str]:
    """Return the text of each entry of a lock file, version and hashes, by package."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text.strip()) if not entry.startswith("#")]
    return {entry.partition("==")[0]: entry for entry in entries}


@pytest.mark.parametrize(("lock", "at_least"), [("all", 100), ("base", 30), ("installer", 1)])
def test_every_pinned_package_has_its_hashes(lock: str, at_least: int) -> None:
    """The installer then refuses any file that is not the one that was locked."""
    pinned = pinned_in(lock)
    assert len(pinned) >= at_least
    assert not [name for name, entry in pinned.items() if "--hash=sha256:" not in entry]


def test_the_base_has_the_versions_of_the_whole_environment() -> None:
    everything, base = pinned_in("all"), pinned_in("base")
    assert {name: everything.get(name) for name in base} == base
    required = {canonicalize_name(name) for name in required_names(setup()["options"]["install_requires"])}
    assert required <= set(base)
