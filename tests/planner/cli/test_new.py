"""`planner new`: what it writes installs, conforms, solves, sweeps and explains, as CONTRIBUTING claims."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from planner.cli.new import ask
from planner.contract.questions import OpenQuestion
from planner.scenarios.catalogue import system_names
from tests.commands import planner


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new system, installed for child processes beside planner."""
    folder = tmp_path_factory.mktemp("new") / "toy_system"
    result = planner("new", "system", "toy_system", "--out", folder)
    assert result.code == 0, result.err
    metadata = folder / "src" / "toy_system-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-system\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[planner.systems]\ntoy_system = toy_system:SYSTEM\n")
    return folder


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "src"), *(path for path in sys.path if path)]
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_new_system_conforms(toy: Path) -> None:
    result = run(toy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


@pytest.mark.slow
def test_the_new_system_is_solved_explained_and_swept(toy: Path, tmp_path: Path) -> None:
    result = run(toy, "-m", "planner.cli", "compare", "scenarios/example.toml", "--json")
    assert result.returncode == 0, result.stderr
    by_design = {
        item["design"]: item["metrics"]["served_value"] for item in json.loads(result.stdout)["runs"]
    }
    assert by_design["optimum"] >= by_design["greedy"] > 0
    result = run(toy, "-m", "planner.cli", "explain", "scenarios/example.toml", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["explanation"]["sentences"]
    store = tmp_path / "store"
    result = run(toy, "-m", "planner.cli", "sweep", "scenarios/example.toml", "--out", store, "--workers", 1)
    assert result.returncode == 0, result.stderr
    assert "9 of 9 points" in result.stderr


@pytest.mark.parametrize("name", system_names())
def test_a_new_design_decides_at_once(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    result = planner("new", "design", "mine", "--system", name, "--out", folder)
    assert result.code == 0, result.err
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "pyproject.toml", "setup.cfg", "src", "tests",
    ]  # fmt: skip
    module = load(folder / "src" / "mine" / "__init__.py")
    assert module.DESIGN.name == "mine"
    assert f"{name}.mine = mine:DESIGN" in (folder / "setup.cfg").read_text()


IMPORTED = """
import {package}, planner
assert {package}.__file__ == {file!r}, {package}.__file__
problem = planner.generate("traffic", "abilene")
result = planner.compare(problem, designs=["toy_design", "optimum"])
assert result["toy_design"].metrics["delivered_mbps"] == result["optimum"].metrics["delivered_mbps"]
system = planner.generate("toy_scratch", tasks=6, servers=2, seed=1)
print(planner.solve(system).status)
"""


@pytest.mark.slow
def test_new_packages_are_installed_and_imported_from_the_folder_beside(tmp_path: Path) -> None:
    for words in (("system", "toy_scratch"), ("design", "toy_design", "--system", "traffic")):
        result = planner("new", *words, "--out", tmp_path / words[1])
        assert result.code == 0, result.err
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python, site = environment / "bin" / "python", next(environment.glob("lib/*/site-packages"))
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (site / "shared.pth").write_text(f"import site; list(map(site.addsitedir, {shared}))\n")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check"]
    for words in (("-e", tmp_path / "toy_scratch"), (tmp_path / "toy_design",)):
        done = subprocess.run([*install, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    places = {
        "toy_scratch": tmp_path / "toy_scratch" / "src" / "toy_scratch" / "__init__.py",
        "toy_design": site / "toy_design" / "__init__.py",
    }
    for package, file in places.items():
        lines = IMPORTED.format(package=package, file=str(file))
        done = subprocess.run(
            [python, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "optimal"
    listed = [python, "-m", "planner.cli", "list", "traffic", "--section", "designs"]
    assert "toy_design" in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path / "toy_design"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("system", "../evil"), "../evil: is no name"),
        (("system", "Toy"), "Toy: is no name"),
        (("system", "class"), "class: is no name"),
        (("system", "traffic"), "traffic: a system of this name is installed"),
        (("system", "json"), "json: a Python module of this name is installed"),
        (("design", "ecmp", "--system", "traffic"), "ecmp: traffic has a design of this name"),
        (("design", "json", "--system", "traffic"), "json: a Python module of this name is installed"),
        (("design", "mine", "--system", "trafic"), "trafic: no such system; did you mean 'traffic'?"),
    ],
)
def test_bad_names_are_one_line(words: tuple[str, ...], line: str, tmp_path: Path) -> None:
    result = planner("new", *words, "--out", tmp_path / "x")
    assert result.code == 1
    assert line in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_a_folder_with_files_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    result = planner("new", "system", "fresh_system", "--out", tmp_path)
    assert result.code == 1
    assert "is not an empty folder" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("2\n", False), ("\n", True), ("0\n3\nyes\n1\n", True)],
    ids=("number", "default", "again"),
)
def test_a_question_is_asked_until_a_number_answers_it(typed: str, answer: bool) -> None:
    application = typer.Typer()
    answers = {True: "a line both ways", False: "one way"}
    question = OpenQuestion(
        parameter="both", text="is a row a line", answers=answers, assumed=True, reason="x"
    )

    @application.command()
    def command() -> None:
        typer.echo(ask(question))

    result = CliRunner().invoke(application, input=typed)
    assert result.stdout.endswith(f"{answer}\n")
    assert result.stderr.startswith("Is a row a line?\n  1  a line both ways (likely: x)\n  2  one way\n")
    assert result.stderr.count("must be a number from 1 to 2") == len(typed.splitlines()) - 1
