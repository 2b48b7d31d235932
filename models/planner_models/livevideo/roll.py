"""A trace of sessions solved window by window: `python -m planner_models.livevideo.roll FOLDER --out DIR`.

Each window starts from the last plan. What a window decided is written as soon as it is known, so
a run that is stopped leaves what was finished, and one that is started again goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.progress import Progress

from planner.errors import InputError, PlannerError
from planner.options import Options
from planner.system import Decision
from planner.tables import read_table, write_table
from planner_models.livevideo import columns
from planner_models.livevideo.check import check
from planner_models.livevideo.measure import measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.trees import TREES, Trees
from planner_models.livevideo.windows import read_trace, requests, windows


def roll(
    folder: Path,
    *,
    window_s: float = 60.0,
    most_moved: int | None = None,
    options: Options = Options(),
    out: Path | None = None,
) -> Iterator[dict[str, Any]]:
    """The metrics of each window, in order; each is decided with the last decision at hand.

    out  folder for `window-NNNN.parquet` (trees) and `.json` (metrics); windows there are not solved again
    """
    network, sessions = read_trace(folder)
    previous: Decision[Trees] | None = None
    for index in range(windows(sessions, window_s)):
        problem = LiveVideo.from_tables(
            {**network, "requests": requests(sessions, index=index, window_s=window_s)}
        )
        name = f"window-{index:04d}"
        if out is not None and (out / f"{name}.json").exists():
            plan = Trees(trees=read_table(TREES, out / f"{name}.parquet"))
            previous = _kept(plan)
            yield json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
            continue
        decision = columns.distribute(problem, most_moved=most_moved, options=options, previous=previous)
        assert decision.plan is not None
        broken = check(problem, decision.plan)
        last = None if previous is None else previous.plan
        row = {
            "window": index,
            "requests": len(problem.requests),
            "gap": decision.proof.gap,
            "violations": len(broken),
            **measure(problem, decision.plan, last),
        }
        if out is not None:
            write_table(decision.plan.trees, out / f"{name}.parquet")
            partial = out / f".{name}.json.partial"
            partial.write_text(json.dumps(row, indent=1), encoding="utf-8")
            partial.replace(out / f"{name}.json")
        previous = decision
        yield row


def _kept(plan: Trees) -> Decision[Trees]:
    """A plan read back, as a decision to start from."""
    from planner.proof import Proof, Status

    return Decision(plan=plan, proof=Proof(status=Status.FEASIBLE))


def main(
    folder: Annotated[Path, typer.Argument(help="folder with clusters, links, objects and sessions")],
    out: Annotated[Path, typer.Option(help="folder that plans and metrics are written to")],
    window_s: Annotated[float, typer.Option(min=1e-3, help="length of a window, s")] = 60.0,
    most_moved: Annotated[int | None, typer.Option(min=0, help="most trees that may change")] = None,
    time_limit: Annotated[float, typer.Option(min=1e-3, help="seconds for each window")] = 10.0,
    gap: Annotated[float, typer.Option(min=0.0, max=0.99, help="relative gap that is good enough")] = 1e-3,
) -> None:
    """Solve a trace of sessions window by window, each from the last plan."""
    console = Console(stderr=True)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _, sessions = read_trace(folder)
        count = windows(sessions, window_s)
        rows = []
        with Progress(console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("windows", total=count)
            for row in roll(
                folder,
                window_s=window_s,
                most_moved=most_moved,
                options=Options(time_limit_s=time_limit, gap=gap),
                out=out,
            ):
                rows.append(row)
                progress.advance(task)
    except InputError as error:
        for fault in error.faults:
            console.print(f"error: {fault}", style="red", markup=False, highlight=False)
        raise typer.Exit(error.exit_code) from None
    except PlannerError as error:
        console.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(error.exit_code) from None
    table = pd.DataFrame(rows)
    write_table(table, out / "windows.csv")
    shown = ["window", "requests", "gap", "clients_at_bitrate", "average_bitrate_kbps", "moved_objects"]
    typer.echo(table[shown].to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
