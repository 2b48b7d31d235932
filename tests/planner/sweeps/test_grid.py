"""Grids of sweeps, and the digests by which equal runs are recognised."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import Options
from planner.errors import InputError, PlannerError
from planner.scenarios.scenario import Scenario, from_document, load
from planner.sweeps.grid import Grid, lay_out
from planner.sweeps.worker import run_requests
from tests.commands import planner

LINKS = "tail,head,capacity_mbps\ns,a,10\na,t,10\ns,b,5\nb,t,5\n"
DOCUMENT: dict[str, Any] = {
    "system": "traffic",
    "problem": {"source": "tables", "path": "net"},
    "designs": {"optimum": {}, "ecmp": {}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "links.csv").write_text(LINKS)
    (tmp_path / "net" / "demands.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    return tmp_path


def scenario(folder: Path, **changes: Any) -> Scenario:
    return from_document({**DOCUMENT, **changes}, name="s", folder=folder)


def places(grid: Grid) -> list[tuple[Any, ...]]:
    return [(point.request.label, *point.values.values()) for point in grid.points]


def only(grid: Grid) -> str:
    """The digest of a grid's one run, as the worker that makes it names it."""
    records = run_requests([point.request for point in grid.points])
    assert len(records) == 1
    assert records[0].status != "failed", records[0].message
    point = grid.points[0]
    assert point.digest(records[0].problem) == records[0].digest, "the sweep and its worker agree on the name"
    return records[0].digest


# --- grids --------------------------------------------------------------------------------


def test_the_grid_is_the_product_of_its_axes_problem_by_problem(folder: Path) -> None:
    grid = lay_out([scenario(folder)], axes={"problem.scale": [1, 2], "solver.seed": [3, 4]})
    assert grid.axes == ("problem.scale", "solver.seed")
    assert places(grid) == [
        (label, scale, seed)
        for scale in (1, 2)
        for label, seed in itertools.product(("optimum", "ecmp"), (3, 4))
    ]


def test_an_axis_of_a_design_changes_no_other_design(folder: Path) -> None:
    axes = {"problem.scale": [1, 2], "designs.optimum.paths": [1, 2, 3]}
    grid = lay_out([scenario(folder)], axes=axes)
    assert len(grid) == 2 * 3 + 2
    assert [list(p.values) for p in grid.points if p.request.label == "ecmp"] == [["problem.scale"]] * 2


def test_zipped_axes_go_in_parallel(folder: Path) -> None:
    axes = {"problem.scale": [1, 2, 3], "designs.optimum.paths": [1, 2, 2], "solver.seed": [7]}
    grid = lay_out([scenario(folder)], axes=axes, zipped=True)
    assert places(grid) == [
        ("optimum", 1, 1, 7),
        ("ecmp", 1, 7),
        ("optimum", 2, 2, 7),
        ("ecmp", 2, 7),
        ("optimum", 3, 2, 7),
        ("ecmp", 3, 7),
    ]
    axes = {"problem.scale": [1, 2, 3], "solver.seed": [1, 2]}
    with pytest.raises(InputError) as caught:
        lay_out([scenario(folder)], axes=axes, zipped=True)
    assert caught.value.faults == (
        "s: --zip: problem.scale has 3, solver.seed has 2 values; all must have the same number, or one",
    )


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), min_size=0, max_size=2),
)
def test_the_size_of_a_grid_follows_from_its_axes(shared: list[int], own: list[int]) -> None:
    keys = ["problem.seed", "solver.seed", "solver.time_limit_s"]
    axes: dict[str, Any] = {key: list(range(1, count + 1)) for key, count in zip(keys, shared, strict=False)}
    current = ["designs.optimum.paths", "designs.optimum.max_hops"]
    axes |= {key: list(range(5, count + 5)) for key, count in zip(current, own, strict=False)}
    if "designs.optimum.max_hops" in axes:
        axes.setdefault("designs.optimum.paths", [2])
    document = {
        "system": "traffic",
        "problem": {"source": "generate", "preset": "fat_tree"},
        "designs": {"optimum": {}, "ecmp": {}},
    }
    grid = lay_out([from_document(document, name="s", folder=Path())], axes=axes)
    common = 1
    for count in shared:
        common *= count
    alone = 1
    for count in own:
        alone *= count
    assert len(grid) == common * alone + common
    problems = [point.request.problem_key for point in grid.points]
    assert len(list(itertools.groupby(problems))) == len(set(problems)) == shared[0], (
        "each problem is made once"
    )


def test_given_axes_override_those_of_the_scenario(folder: Path) -> None:
    own_values = scenario(folder, sweep={"problem": {"scale": [1, 2]}, "solver.seed": [1, 2, 3]})
    assert own_values.sweep == {"problem.scale": [1, 2], "solver.seed": [1, 2, 3]}
    assert len(lay_out([own_values])) == 2 * 6
    assert len(lay_out([own_values], axes={"solver.seed": [9]})) == 2 * 2
    assert len(lay_out([own_values], designs=["ecmp"])) == 6


def test_several_scenarios_of_several_systems_in_one_grid(folder: Path) -> None:
    names = ["traffic/abilene", "circuits/exact_8"]
    grid = lay_out([load(name) for name in names], axes={"solver.seed": [1, 2]})
    expected = [name for name in names for _ in range(2 * len(load(name).designs))]
    assert [point.request.scenario for point in grid.points] == expected
    with pytest.raises(InputError) as caught:
        lay_out([load(names[0]), load(names[0])])
    assert caught.value.faults == ("traffic/abilene: is given twice",)


@pytest.mark.parametrize(
    ("axes", "faults"),
    [
        ({"problem.scale": [1, -1]}, ["s: problem.scale is -1, must be greater than or equal to 0"]),
        (
            {"problem.scal": [1], "designs.optimum.paths": [0]},
            [
                "s: problem.scal: no such key of source 'tables'; did you mean 'scale'?",
                "s: designs.optimum.paths is 0, must be integer > 0 | any | tunnels",
            ],
        ),
        ({"scale": [1]}, ["sweep.scale: no such key; valid: designs, problem, solver"]),
        ({"problem.scale": []}, ["sweep.problem.scale must be a list of values, such as [1, 2, 3]"]),
        (
            {"problem..x": [1]},
            ["sweep.problem..x: a key is words with dots between them, such as problem.scale"],
        ),
        (
            {"designs.optimun.paths": [1]},
            ["sweep.designs.optimun.paths: no such design of this sweep; did you mean 'optimum'?"],
        ),
        ({"solver.gap": [0.1, 7]}, ["s: solver.gap is 7.0, must be at least 0 and less than 1"]),
    ],
)
def test_every_fault_of_a_grid_is_found_before_anything_runs(
    folder: Path, axes: dict[str, Any], faults: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        lay_out([scenario(folder)], axes=axes)
    assert list(caught.value.faults) == faults


def test_a_scenario_with_a_wrong_sweep_is_refused_by_every_command(folder: Path) -> None:
    (folder / "s.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "tables"\npath = "net"\n[designs.ecmp]\n'
        '[sweep]\n"problem.scale" = [1, "x"]\n"problm.seed" = [1]\n"designs.optimum.paths" = [2]\n'
    )
    result = planner("check", folder / "s.toml")
    assert result.code == 1
    assert result.err.splitlines() == [
        f"{folder}/s.toml: sweep.problm.seed: no such key; did you mean 'problem'?",
        f"{folder}/s.toml: sweep: problem.scale is 'x', must be a number",
        f"{folder}/s.toml: sweep.designs.optimum.paths: no such design of this scenario; valid: ecmp",
    ]


def test_errors_of_a_sweep_say_what_to_do(folder: Path) -> None:
    with pytest.raises(InputError, match="needs a scenario"):
        lay_out([])


# --- what is the same run -----------------------------------------------------------------


def test_the_digest_depends_on_no_names(folder: Path, tmp_path: Path) -> None:
    first = only(lay_out([scenario(folder)], designs=["ecmp"]))
    assert only(lay_out([scenario(folder, designs={"mine": {"design": "ecmp"}})])) == first, "labels"
    other = tmp_path / "other"
    other.mkdir()
    (other / "edges.csv").write_text(LINKS)
    (other / "rates.csv").write_text("source,target,rate_mbps\ns,t,12\n")
    same = scenario(other, problem={"source": "tables", "links": "edges.csv", "demands": "rates.csv"})
    assert only(lay_out([same], designs=["ecmp"])) == first, "file names"
    assert only(lay_out([scenario(folder, solver={"threads": 1})], designs=["ecmp"])) == first, "the default"
    spelled = scenario(folder, designs={"optimum": {"paths": "any", "objective": "delivered"}})
    plain = lay_out([scenario(folder)], designs=["optimum"])
    assert only(lay_out([spelled])) == only(plain), "defaults said aloud"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"problem": {"source": "tables", "path": "net", "scale": 2}},
        {"designs": {"optimum": {"paths": 2}}},
        {"designs": {"optimum": {"information": {"noise": 0.1}}}},
        {"solver": {"gap": 0.1}},
        {"solver": {"backend": "ortools:glop"}},
        {"solver": {"threads": 2}},
    ],
)
def test_the_digest_changes_with_every_input(folder: Path, changes: dict[str, Any]) -> None:
    first = only(lay_out([scenario(folder)], designs=["optimum"]))
    assert only(lay_out([scenario(folder, **changes)], designs=["optimum"])) != first


def test_the_digest_changes_with_the_contents_of_files(folder: Path) -> None:
    before = lay_out([scenario(folder)], designs=["ecmp"])
    first = only(before)
    (folder / "net" / "demands.csv").write_text("source,target,rate_mbps\ns,t,13\n")
    after = lay_out([scenario(folder)], designs=["ecmp"])
    assert after.points[0].request.problem_key != before.points[0].request.problem_key
    assert only(after) != first


def test_warm_runs_have_digests_of_their_own(folder: Path) -> None:
    cold = only(lay_out([scenario(folder)], designs=["optimum"]))
    assert only(lay_out([scenario(folder)], designs=["optimum"], warm=True)) != cold


def test_solvers_of_a_sweep_take_one_thread(folder: Path) -> None:
    assert lay_out([scenario(folder)]).points[0].options == Options(threads=1)
    assert lay_out([scenario(folder, solver={"threads": 3})]).points[0].options.threads == 3
    unknown = scenario(folder, solver={"backend": "pyomo:highs"})
    assert lay_out([unknown]).points[0].options.threads is None


# --- one run in a worker ------------------------------------------------------------------


def test_a_run_that_fails_is_a_record_with_its_message(folder: Path) -> None:
    grid = lay_out([scenario(folder, designs={"optimum": {"objective": "cost"}, "ecmp": {}})])
    failed, good = run_requests([point.request for point in grid.points])
    assert (failed.status, failed.exit_code) == ("failed", 1)
    assert failed.message is not None
    assert "cost" in failed.message
    assert ("error", failed.message) in failed.messages
    assert good.status == "heuristic"
    assert good.settings["problem.path"] == "net"
    assert good.metrics["max_utilization"] == pytest.approx(1.2)


def test_a_problem_that_cannot_be_made_fails_each_of_its_runs(folder: Path) -> None:
    grid = lay_out([scenario(folder, problem={"source": "tables", "path": "net", "scale": 1.5})])
    (folder / "net" / "links.csv").write_text("tail,head,capacity_mbps\ns,a,-1\n")
    records = run_requests([point.request for point in grid.points])
    assert [record.status for record in records] == ["failed", "failed"]
    assert records[0].problem is None
    assert records[0].message == "links.csv row 2: capacity_mbps is -1.0, must be at least 0"
    assert len({record.digest for record in records}) == 2


def test_a_bug_in_a_design_is_a_failed_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.sweeps import worker as performing

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("in the\nmiddle")

    monkeypatch.setattr(performing, "evaluate", broken)
    (record, _) = run_requests([point.request for point in lay_out([scenario(folder)]).points])
    assert record.status == "failed"
    assert record.message == "internal error: ZeroDivisionError: in the middle"
    assert record.exit_code == 70


def test_a_worker_of_another_version_makes_no_run(folder: Path) -> None:
    request = replace(lay_out([scenario(folder)]).points[0].request, versions="planner 0.0.0")
    with pytest.raises(PlannerError, match=r"has planner .*, the sweep planner 0\.0\.0: install the same"):
        run_requests([request])


# --- warm starts --------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["concurrent", "utilization", "total"])
def test_warm_runs_have_the_same_answers(objective: str) -> None:
    document = {
        "system": "traffic",
        "problem": {"source": "generate", "preset": "abilene"},
        "designs": {"optimum": {"objective": objective}},
    }
    item = from_document(document, name="s", folder=Path())
    axes = {"problem.scale": [0.8, 1, 1.2], "designs.optimum.information.noise": [0.0, 0.1]}
    answers = [
        run_requests([point.request for point in lay_out([item], axes=axes, warm=warm).points])
        for warm in (False, True)
    ]
    for cold, warm in zip(*answers, strict=True):
        assert (cold.status, warm.status) == ("optimal", "optimal")
        assert warm.objective == pytest.approx(cold.objective, rel=1e-7)
        assert warm.bound == pytest.approx(cold.bound, rel=1e-7)


def test_a_cached_basis_saves_simplex_iterations() -> None:
    import numpy as np

    from planner import backends
    from planner.backends import basis_cache, highs
    from planner_models.traffic.designs.optimum import optimum
    from planner_models.traffic.problem import generators

    program = optimum.model(generators.fat_tree(k=4, seed=1), objective="total")
    steps: list[int] = []
    run = highs.run

    def counting(solver: Any, backend: str) -> Any:
        status = run(solver, backend)
        steps.append(solver.getInfo().simplex_iteration_count)
        return status

    bases = basis_cache.BasisCache()
    with pytest.MonkeyPatch.context() as patch, basis_cache.use_cache(bases):
        patch.setattr(highs, "run", counting)
        first = backends.solve(program, Options(threads=1))
        again = backends.solve(program, Options(threads=1))
    assert first.objective == pytest.approx(again.objective)
    assert steps[0] > 0
    assert steps[1:] == [0]
    assert basis_cache.get_basis(program) is None
    assert np.isfinite(program.cost).all()


def test_a_basis_that_did_not_help_is_excluded() -> None:
    from planner import backends
    from planner.backends import basis_cache, highs
    from planner_models.traffic.designs.optimum import optimum
    from planner_models.traffic.problem import generators

    program = optimum.model(generators.fat_tree(k=4, seed=1), objective="total")
    with pytest.MonkeyPatch.context() as patch, basis_cache.use_cache(basis_cache.BasisCache()):
        cold = backends.solve(program, Options(threads=1))
        assert basis_cache.get_basis(program) is not None
        patch.setattr(highs, "SMALL_ROWS", 0)
        patch.setattr(highs, "WARM_ITERATIONS_PER_ROW", 0.0)
        other = optimum.model(generators.fat_tree(k=4, seed=1).scale_demands(3.0), objective="total")
        assert backends.solve(other, Options(threads=1)).objective == pytest.approx(
            backends.solve(other, Options(threads=1, algorithm="interior-point")).objective
        )
        helped = basis_cache.get_basis(other) is not None
    assert cold.objective is not None
    assert not helped
