"""HiGHS: silence, threads, options, and the choice of an algorithm."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from highspy import HighsModelStatus

from planner import clock
from planner.backends import highs, solve
from planner.backends.linear_program import LinearProgram, Rows
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options


def covering(seed: int = 0, *, rows: int = 30, columns: int = 60, full: bool = True) -> LinearProgram:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, columns), density=0.15, rng=rng, format="csr")
    matrix.data[:] = np.ceil(matrix.data * 9)
    reach = np.asarray(matrix.sum(axis=1))
    return LinearProgram.build(
        cost=rng.integers(1, 20, columns).astype(float),
        rows=[Rows("cover", matrix, lower=np.minimum(5.0, reach))],
        upper=2.0,
        integer=full,
    )


def concurrent_flow(nodes: int = 12) -> LinearProgram:
    """The largest share of all demand that a ring carries: only the share has a value."""
    tail = np.repeat(np.arange(nodes), 2)
    head = (tail + np.tile([1, -1], nodes)) % nodes
    links, every = tail.size, np.arange(tail.size)
    incidence = sp.csr_array(
        (np.r_[np.ones(links), -np.ones(links)], (np.r_[tail, head], np.r_[every, every])),
        shape=(nodes, links),
    )
    net = nodes * np.eye(nodes) - 1.0
    flows = sp.kron(sp.eye_array(nodes), incidence, format="csr")
    loads = sp.kron(np.ones((1, nodes)), sp.eye_array(links), format="csr")
    return LinearProgram.build(
        sense="max",
        cost=np.r_[np.zeros(nodes * links), 1.0],
        rows=[
            Rows("conserve", sp.hstack([flows, sp.csr_array(-net.reshape(-1, 1))]), lower=0.0, upper=0.0),
            Rows("capacity", sp.hstack([loads, sp.csr_array((links, 1))]), upper=10.0),
        ],
    )


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    solve(covering())
    for algorithm in ("simplex", "interior-point", "pdlp"):
        solve(concurrent_flow(), Options(algorithm=algorithm))
    solve(LinearProgram.build(cost=[-1.0], integer=True))
    solve(LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array([[1e-12]]), lower=1.0)]))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == ""


def test_solves_with_other_threads_follow_each_other() -> None:
    optima = [solve(covering(), Options(threads=threads)).objective for threads in (1, 2, 1, 3, 2)]
    assert None not in optima
    assert len(set(optima)) == 1


def test_another_user_of_highs_in_this_process_does_no_harm() -> None:
    other = highs.load(covering(), Options(threads=3))
    other.run()  # in this very thread, which then has its pool of workers
    assert solve(covering(), Options(threads=1)).status is Status.OPTIMAL
    assert solve(covering(), Options(threads=2, backend="pyomo:highs")).status is Status.OPTIMAL


def test_solves_with_other_threads_overlap_each_other() -> None:
    expected = {seed: solve(covering(seed)).objective for seed in range(4)}

    def objective(job: tuple[int, int]) -> tuple[int, float | None]:
        seed, threads = job
        return seed, solve(covering(seed), Options(threads=threads)).objective

    jobs = [(seed, threads) for threads in (1, 2, 3) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for seed, result in pool.map(objective, jobs):
            assert result == pytest.approx(expected[seed])


def test_options_reach_highs() -> None:
    loaded = highs.load(covering(), Options(time_limit_s=12.5, threads=3, seed=42))
    for option, value in (("time_limit", 12.5), ("threads", 3), ("random_seed", 42), ("output_flag", False)):
        assert loaded.getOptionValue(option) == (highspy.HighsStatus.kOk, value)


@pytest.mark.parametrize(
    ("model", "algorithm"),
    [
        (covering(full=False), "simplex"),  # small
        (concurrent_flow(), "simplex"),  # small
        (concurrent_flow(36), "interior-point"),  # 1,368 rows, one variable with a value
        (covering(full=False, rows=1200, columns=1300), "simplex"),
    ],
)
def test_auto_follows_the_shape(model: LinearProgram, algorithm: str) -> None:
    solution = solve(model)
    assert solution.status is Status.OPTIMAL
    assert solution.backend == f"{highs.NAME} {algorithm}"


def test_auto_turns_to_the_interior_point_where_the_simplex_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "SMALL_ROWS", 2)
    monkeypatch.setattr(highs, "SPARSE_COST_SHARE", 0.0)
    model = concurrent_flow(6)  # 48 rows: 96 steps, one per flow and row at least
    monkeypatch.setattr(highs, "ITERATIONS_PER_ROW", 0.1)
    assert solve(model).backend.endswith("interior-point")
    assert solve(model).objective == pytest.approx(solve(model, Options(algorithm="simplex")).objective)


@pytest.mark.parametrize("algorithm", ["interior-point", "pdlp"])
def test_answers_without_a_basis_count_when_verified(algorithm: str) -> None:
    model = concurrent_flow()
    exact = solve(model, Options(algorithm="simplex")).objective
    assert exact is not None
    solution = highs.solve(model, Options(algorithm=algorithm), crossover=False)  # type: ignore[arg-type]
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(exact, rel=1e-6)
    assert solution.bound is not None
    assert solution.bound >= exact * (1 - 1e-8)


def test_a_model_that_highs_rejects_is_a_failure() -> None:
    model = LinearProgram.build(cost=[1.0], rows=[Rows("r", sp.csr_array([[1e16]]), lower=1.0)])
    with pytest.raises(SolverFailure, match="calls the model 'model' invalid"):
        solve(model)


def test_an_unbounded_model_that_presolve_calls_infeasible() -> None:
    """HiGHS 1.10 to 1.15 do; without presolve they find out."""
    model = LinearProgram.build(
        cost=[3.0, 2, 0, 1, -5, -1],
        rows=[
            Rows(
                "r",
                sp.csr_array(
                    [
                        [-2.0, -1, 0, 0, -2, 0],
                        [3, 0, -2, -2, 0, 3],
                        [-3, -1, 2, 0, 0, 1],
                        [0, -1, 0, -3, 0, -2],
                        [0, -2, 0, -2, 2, 0],
                    ]
                ),
                lower=[-5.0, 13, -1, -3, 4],
                upper=[np.inf, np.inf, np.inf, -3, np.inf],
            )
        ],
        lower=[-np.inf, -np.inf, -np.inf, -2, -2, -2],
        upper=[np.inf, np.inf, np.inf, 4, 4, 4],
    )
    for algorithm in ("auto", "simplex", "interior-point", "pdlp"):
        assert solve(model, Options(algorithm=algorithm)).status is Status.UNBOUNDED
    beside = solve(model, Options(backend="pyomo:highs"))
    assert beside.status is Status.UNDECIDED
    assert "calls the model infeasible, which it is not" in beside.reasons[0]


def test_a_model_that_probing_calls_infeasible() -> None:
    """HiGHS 1.13 does. Other solvers, and HiGHS without probing, find -14."""
    model = LinearProgram.build(
        cost=[1.0, -3, 4, -1],
        offset=-2.0,
        rows=[
            Rows("r", sp.csr_array([[0.0, -3, -1, -1], [0, 0, 3, 2]]), lower=[0.0, -2], upper=[5.0, np.inf])
        ],
        lower=-2.0,
        upper=4.0,
        integer=[True, False, True, True],
    )
    assert solve(model).objective == pytest.approx(-14.0)
    beside = solve(model, Options(backend="pyomo:highs"))
    assert beside.status is Status.UNDECIDED
    assert "calls the model infeasible, which it is not" in beside.reasons[0]


def test_fractional_limits_of_whole_variables_do_no_harm() -> None:
    """HiGHS 1.12 to 1.15 give 2.70 for the model as it stands here."""
    model = LinearProgram.build(
        sense="max",
        cost=[0.7227687956411499, -0.8564610448605807],
        rows=[
            Rows("a", sp.csr_array([[-0.238158854253, 0.782602037449]]), upper=0.33688907503146287),
            Rows("b", sp.csr_array([[-0.303109713189, 0.296381664176]]), lower=-1.309837762202),
            Rows("c", sp.csr_array([[-0.303109713189, 0.296381664176]]), upper=0.167917166465112),
        ],
        lower=-4.0,
        upper=[7.5, -1.0],
        integer=True,
    )
    assert solve(model).objective == pytest.approx(3.4258, abs=1e-4)


def test_a_limit_in_cpu_seconds_ends_a_hard_program() -> None:
    hard = covering(rows=120, columns=300)
    with clock.count_cpu_seconds():
        assert clock.is_counting_cpu()
        begin = time.process_time()
        solution = solve(hard, Options(time_limit_s=0.4, threads=1))
        used_s = time.process_time() - begin
    assert not clock.is_counting_cpu()
    assert solution.status is not Status.OPTIMAL
    assert 0.3 <= used_s <= 2.0


class SteppedClock:
    """HiGHS whose clock, the system's, is set by some seconds in its first run, which that may end."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.run_s, self.limit_s, self.runs = step_s, 0.0, 600.0, 0
        self.cancelled = threading.Event()

    def getRunTime(self) -> float:  # noqa: N802 - HiGHS's names
        return self.run_s

    def getOptionValue(self, name: str) -> tuple[None, float]:  # noqa: N802
        assert name == "time_limit"
        return None, self.limit_s

    def setOptionValue(self, name: str, value: float) -> None:  # noqa: N802
        assert name == "time_limit"
        self.limit_s = value

    def run(self) -> None:
        self.runs += 1
        self.run_s += self.step_s if self.runs == 1 else 1.0
        if self.run_s < 0:
            self.cancelled.wait(30.0)

    def cancelSolve(self) -> None:  # noqa: N802
        self.cancelled.set()

    def getModelStatus(self) -> HighsModelStatus:  # noqa: N802
        if self.cancelled.is_set():
            return HighsModelStatus.kInterrupt
        return HighsModelStatus.kTimeLimit if self.run_s > self.limit_s else HighsModelStatus.kOptimal


class WithoutStatus(SteppedClock):
    """HiGHS that ends without a status."""

    def getModelStatus(self) -> HighsModelStatus:  # noqa: N802
        return HighsModelStatus.kNotset

    def modelStatusToString(self, status: HighsModelStatus) -> str:  # noqa: N802
        return {HighsModelStatus.kNotset: "Not Set"}[status]


def test_a_search_without_a_status_is_undecided_under_a_limit_and_else_a_failure() -> None:
    limited, unlimited = WithoutStatus(0.0), WithoutStatus(0.0)
    assert highs.run(limited, "highs") is Status.UNDECIDED  # type: ignore[arg-type]
    unlimited.limit_s = math.inf
    with pytest.raises(SolverFailure, match="Not Set"):
        highs.run(unlimited, "highs")  # type: ignore[arg-type]


def test_a_clock_that_is_set_forward_does_not_end_a_search() -> None:
    stepped = SteppedClock(3600.0)
    assert highs.run(stepped, "highs") is Status.OPTIMAL  # type: ignore[arg-type]
    assert stepped.runs == 2
    assert stepped.limit_s == pytest.approx(3600.0 + 600.0, abs=5.0), "the rest of its limit, from then on"


def test_a_clock_that_is_set_back_does_not_prolong_a_search() -> None:
    stepped = SteppedClock(-3600.0)
    stepped.limit_s = 0.05
    assert highs.run(stepped, "highs") is Status.UNDECIDED  # type: ignore[arg-type]
    assert stepped.cancelled.is_set()
    # HiGHS 1.13 takes a negative time for that of no clock, and writes before the start of a list
    with pytest.raises(SolverFailure, match=r"the system's clock was set back by 3600 s"):
        highs.run(stepped, "highs")  # type: ignore[arg-type]
    assert stepped.runs == 1
