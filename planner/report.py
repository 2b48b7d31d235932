"""Results for people, on a terminal."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from planner.proof import Proof, Status

if TYPE_CHECKING:
    from pathlib import Path

    from planner.backends.doctor import Found
    from planner.explain import Explained
    from planner.parameters import Parameter
    from planner.published import Target
    from planner.reproduce import Reproduction
    from planner.rolling import Window
    from planner.run import Comparison, Run
    from planner.system import Design, Metric, Section, System, Violations
    from planner.tables import Table as Schema


class Terminal(Console):
    """The terminal. Who stops reading, as `head` does, ends the command as it does others (`planner.cli`)."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


console = Terminal(highlight=False)

LADDERS = (
    {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86_400.0},
    {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
)
"""Units that people say in another size, ascending."""
ARROWS = "↑ more is better, ↓ less is better"


# --- runs ---------------------------------------------------------------------------------


def save_text(path: Path, comparison: Comparison) -> None:
    """The comparison as a text file, as wide as its tables want."""
    with path.open("w", encoding="utf-8") as file:
        show_comparison(comparison, Console(file=file, width=max(100, 40 + 16 * len(comparison.runs))))


def show_comparison(comparison: Comparison, console: Console = console) -> None:
    """Metrics side by side, a column for each design, and what went wrong where.

    Where the designs are too many for the width they stand in several tables, below each other.
    """
    blocks = list(_blocks(comparison, console.width))
    caption = ARROWS
    if comparison.reference is not None:
        caption += f"; share_of_bound: of the best {comparison.reference[0]} that is possible"
    for block in blocks:
        console.print(_side_by_side(comparison, block, caption if block is blocks[-1] else None))
    runs = comparison.runs
    for run in runs:
        show_trouble(run, console)


def _blocks(comparison: Comparison, width: int) -> Iterator[list[Run]]:
    """As many runs together as fit beside the metrics' names and units."""
    room = width - max(len(metric.name) for metric in comparison.system.metrics) - 16
    block: list[Run] = []
    left = room
    for run in comparison.runs:
        need = 3 + max(8, len(run.label), min(12, len(str(run.entry.design.mechanism))))
        if block and need > left:
            yield block
            block, left = [], room
        block.append(run)
        left -= need
    yield block


def _side_by_side(comparison: Comparison, runs: Sequence[Run], caption: str | None) -> Table:
    system = comparison.system
    table = plain_table(f"{system.name}: {sizes(comparison.problem.size())}", caption)
    table.add_column("", no_wrap=True, min_width=max(len(metric.name) for metric in system.metrics))
    table.add_column("")
    for run in runs:
        table.add_column(run.label, justify="right")
    table.add_row("mechanism", "", *(str(run.entry.design.mechanism) for run in runs), style="dim")
    table.add_row("status", "", *(_status(run) for run in runs))
    table.add_row("gap", "", *(number(run.proof.gap) for run in runs))
    table.add_row("seconds", "", *(number(run.proof.seconds) for run in runs), end_section=True)
    for metric in system.metrics:
        known = [run.metrics.get(metric.name) for run in comparison.runs]
        if any(value is not None for value in known):
            values = [run.metrics.get(metric.name) for run in runs]
            table.add_row(metric.name, unit_of(metric), *_best_in_bold(metric, values, known))
    if comparison.reference is not None:
        table.add_section()
        shares = [comparison.share_of_bound(run) for run in runs]
        table.add_row("share_of_bound", "↑", *(percent(share) for share in shares))
    return table


def show_run(run: Run) -> None:
    """One design's proof and metrics."""
    system, proof = run.system, run.proof
    table = plain_table(f"{system.name}: {sizes(run.problem.size())}", ARROWS)
    table.add_column("", no_wrap=True, min_width=max(len(metric.name) for metric in system.metrics))
    table.add_column("")
    table.add_column(run.label, justify="right")
    table.add_row("mechanism", "", str(run.entry.design.mechanism), style="dim")
    table.add_row("status", "", _status(run))
    if proof.metric:
        table.add_row("objective", proof.metric, number(proof.objective))
        table.add_row("bound", f"within {proof.within}" if proof.within else "", number(proof.bound))
    table.add_row("gap", "", number(proof.gap))
    table.add_row("seconds", "", number(proof.seconds))
    table.add_row("backend", "", proof.backend or "-", end_section=True)
    for metric in system.metrics:
        value = run.metrics.get(metric.name)
        if value is not None:
            table.add_row(metric.name, unit_of(metric), number(value))
    console.print(table)
    show_trouble(run)


def show_trouble(run: Run, console: Console = console) -> None:
    """Why a run has no plan, or what its plan breaks in truth."""
    if run.error is not None:
        console.print(f"{run.label}: {run.error}", markup=False, style="red", soft_wrap=True)
    elif run.plan is None:
        why = "; ".join(run.proof.reasons) or _unexplained(run.proof)
        console.print(f"{run.label}: {run.proof.status}: {why}", markup=False, style="red", soft_wrap=True)
    else:
        show_violations(run.violations, run.label, console)


def _unexplained(proof: Proof) -> str:
    if proof.status is not Status.UNDECIDED:
        return "no reason known"
    if proof.bound is not None:
        return "no plan, only a bound"
    return "neither a plan nor a bound within the limits given"


def show_metrics(system: System, metrics: Mapping[str, float | None]) -> None:
    """The metrics of a plan."""
    table = plain_table(system.name)
    for head in ("metric", "", "plan"):
        table.add_column(head, justify="right" if head == "plan" else "left")
    for metric in system.metrics:
        table.add_row(metric.name, unit_of(metric), number(metrics.get(metric.name)))
    console.print(table)


def show_violations(violations: Violations, label: str, console: Console = console) -> None:
    """The limits that a plan breaks, a line each."""
    for sentence in violations.sentences():
        console.print(f"{label}: {sentence}", markup=False, style="yellow", soft_wrap=True)


def show_windows(system: System, windows: Sequence[Window]) -> None:
    """What the windows of a series came to: each metric's mean and worst, a pair of columns a design.

    Where the designs are too many for the width they stand in several tables, below each other.
    """
    designs: dict[str, list[Window]] = {}
    for window in windows:
        designs.setdefault(window.design, []).append(window)
    labels = list(designs)
    room = console.width - max(len(metric.name) for metric in system.metrics) - 12
    together = max(1, room // 26)
    for first in range(0, len(labels), together):
        chosen = labels[first : first + together]
        last = first + together >= len(labels)
        console.print(_windows(system, {label: designs[label] for label in chosen}, ARROWS if last else None))
    for design, its in designs.items():
        for window in its:
            if window.exit_code:
                why = window.run.get("error") or "; ".join(window.run.get("reasons", [])) or "no plan"
                console.print(f"{design}, {window.label}: {why}", markup=False, style="red", soft_wrap=True)


def _windows(system: System, designs: Mapping[str, Sequence[Window]], caption: str | None) -> Table:
    count = max(len(its) for its in designs.values())
    table = plain_table(f"{system.name}: {count} windows, mean and worst", caption)
    table.add_column("", no_wrap=True)
    table.add_column("")
    for design in designs:
        table.add_column(design, justify="right")
        table.add_column("worst", justify="right", style="dim")
    failed = [str(sum(window.exit_code > 0 for window in its)) for its in designs.values()]
    table.add_row("without a plan", "↓", *(cell for text in failed for cell in (text, "")))
    rows = {design: [w.row() for w in its if not w.exit_code] for design, its in designs.items()}
    for name, unit, worst in [
        ("gap", "↓", max),
        ("seconds", "↓", max),
        ("violations", "↓", max),
        *(
            (metric.name, unit_of(metric), min if metric.better == "more" else max)
            for metric in system.metrics
        ),
    ]:
        known = [[row[name] for row in its if row.get(name) is not None] for its in rows.values()]
        if any(known):
            cells = [(sum(k) / len(k), worst(k)) if k else (None, None) for k in known]
            table.add_row(name, unit, *(number(value) for pair in cells for value in pair))
    return table


@contextlib.contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar with the time left on standard error, on a terminal only; what it gives moves it by one."""
    shown = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


# --- explanations -------------------------------------------------------------------------


def show_explained(explained: Explained) -> None:
    """What limits the plan, what would change it, and how it differs from the one before."""
    run, explanation = explained.run, explained.explanation
    if explanation is None:
        show_trouble(run)
        return
    head = f"{run.system.name}, {run.label}: {sizes(run.problem.size())}"
    console.print(Text(head, style="bold"))
    for sentence in explanation.sentences:
        console.print(f"- {sentence}", markup=False, soft_wrap=True)
    console.print()
    for section in explanation.sections:
        if len(section.frame):
            console.print(_section(section))
        else:
            console.print(Text(f"{section.title}: none", style="bold"))
            console.print(Text(section.note + "\n", style="dim"))
    show_trouble(run)


def _section(section: Section) -> Table:
    table = plain_table(section.title, section.note or None)
    frame = section.frame
    texts = [column for column in frame if frame[column].map(lambda value: isinstance(value, str)).any()]
    for column in frame:
        unit = section.units.get(str(column), "")
        title = _heading(str(column), unit)
        is_text = column in texts
        table.add_column(
            title,
            justify="left" if is_text else "right",
            no_wrap=is_text,
            overflow="fold",
            min_width=max(map(len, title.split()), default=0),
        )
    for row in frame.itertuples(index=False):
        table.add_row(*(value if isinstance(value, str) else number(value) for value in row))
    return table


SAID: Final = {"mbps": "Mbit/s", "gbps": "Gbit/s", "kbps": "kbit/s", "percent": "%"}
"""Units as names end in them, where they are written otherwise."""


def _heading(column: str, unit: str) -> str:
    """A column's name in words, and its unit once."""
    *words, last = column.split("_")
    if not (words and unit and SAID.get(last, last) == unit):
        words.append(last)
    return " ".join(words) + (f"\n{unit}" if unit else "")


# --- published values ---------------------------------------------------------------------

VERDICT_STYLES = {
    "reproduced": "green",
    "calibrated": "cyan",
    "order only": "yellow",
    "not reproduced": "red",
    "not available": "dim",
}


def show_targets(targets: Sequence[tuple[System, Target]]) -> None:
    """The tables and figures that can be run again."""
    table = plain_table("targets")
    for head in ("target", "place", "what it shows", "values"):
        table.add_column(head, justify="right" if head == "values" else "left")
    for system, target in targets:
        table.add_row(f"{system.name}/{target.name}", target.place, target.about, str(len(target.rows)))
    console.print(table)


def show_reproduction(done: Reproduction) -> None:
    """A target's published values beside ours."""
    table = plain_table(f"{done.name}, {done.target.place}: {done.target.about}")
    for head in ("value", "published", "ours", "ratio", "", "verdict"):
        table.add_column(head, justify="right" if head in ("published", "ours", "ratio") else "left")
    names = Counter(row.quantity for row in done.rows)
    for row in done.rows:
        table.add_row(
            row.quantity if names[row.quantity] == 1 else f"{row.quantity}: {row.condition}",
            row.published if isinstance(row.published, str) else number(row.published),
            ("holds" if row.ours else "does not hold") if isinstance(row.ours, bool) else number(row.ours),
            number(row.ratio),
            row.unit if isinstance(row.published, float) else "",
            Text(str(row.verdict), style=VERDICT_STYLES[str(row.verdict)]),
        )
    console.print(table)
    for row in done.rows:
        if row.note:
            console.print(f"- {row.quantity}: {row.note}", markup=False, style="dim", soft_wrap=True)
    if done.error is not None:
        console.print(f"{done.name}: {done.error}", markup=False, style="red", soft_wrap=True)


def show_verdicts(done: Sequence[Reproduction]) -> None:
    """How many values of each target have each verdict."""
    table = plain_table("verdicts")
    table.add_column("target", no_wrap=True)
    for verdict, style in VERDICT_STYLES.items():
        table.add_column(verdict, justify="right", style=style)
    table.add_column("seconds", justify="right")
    for one in done:
        table.add_row(one.name, *(str(count or "") for count in one.counts().values()), number(one.seconds))
    if len(done) > 1:
        totals = [sum(counts) for counts in zip(*(one.counts().values() for one in done), strict=True)]
        table.add_section()
        table.add_row("all", *map(str, totals), number(sum(one.seconds for one in done)))
    console.print(table)


# --- what there is ------------------------------------------------------------------------


def show_systems(systems: Sequence[System]) -> None:
    """The systems, a line each."""
    table = plain_table("systems")
    for head in ("system", "question", "designs", "source"):
        table.add_column(head, overflow="fold")
    for system in systems:
        table.add_row(
            system.name, system.question, ", ".join(design.name for design in system.designs), system.source
        )
    console.print(table)


def show_system(system: System, parameters: Mapping[str, Mapping[str, Parameter]]) -> None:
    """A system whole: tables, sources, presets, designs and metrics, with every parameter.

    parameters  by what takes them, e.g. "source topohub" or "[designs.optimum]"
    """
    console.print(Text(f"{system.name}: {system.question}", style="bold"))
    console.print(Text(f"source: {system.source}\n", style="dim"))
    for title, tables in (("tables of a problem", system.tables), ("tables of a plan", system.plan_tables)):
        console.print(_schemas(title, tables))
    console.print(_designs("designs (the first is the default)", system.designs))
    console.print(_parameters("parameters", parameters))
    table = plain_table("metrics")
    for head in ("metric", "unit", "better", "what it says"):
        table.add_column(head, overflow="fold")
    for metric in system.metrics:
        table.add_row(metric.name, metric.unit or "-", metric.better, metric.about)
    console.print(table)


def show_found(found: Sequence[Found]) -> None:
    """The backends, their versions, and how one tiny solve went."""
    table = plain_table("backends")
    for head in ("backend", "version", "tiny solve", "seconds"):
        table.add_column(head)
    for one in found:
        if one.passed:
            outcome = Text("right", style="green")
        else:
            outcome = Text(one.missing or one.problem or "wrong", style="dim" if one.missing else "red")
        table.add_row(one.backend, one.version or "-", outcome, number(one.seconds))
    console.print(table)


def _schemas(title: str, tables: Sequence[Schema]) -> Table:
    shown = plain_table(title)
    for head in ("table", "column", "what it holds"):
        shown.add_column(head, overflow="fold")
    for table in tables:
        name = table.name
        for column, rule in table.columns.items():
            mark = "" if rule.required else "?"
            shown.add_row(name, column + mark, str(rule.description or ""))
            name = ""
        shown.add_section()
    return shown


def _designs(title: str, designs: Sequence[Design]) -> Table:
    table = plain_table(title)
    for head in ("design", "mechanism", "what it does", "source"):
        table.add_column(head, overflow="fold")
    for design in designs:
        table.add_row(design.name, str(design.mechanism), design.about, design.source)
    return table


def _parameters(title: str, parameters: Mapping[str, Mapping[str, Parameter]]) -> Table:
    table = plain_table(title)
    for head, ratio in (("parameter", 2), ("values", 2), ("what it does", 3)):
        table.add_column(head, ratio=ratio, overflow="fold")
    for owner, its in parameters.items():
        table.add_row(Text(owner, style="bold"))
        for parameter in its.values():
            default = "required" if parameter.required else f"default {_default(parameter.default)}"
            table.add_row(f"  {parameter.name}", f"{parameter.values}; {default}", parameter.about)
        table.add_section()
    return table


# --- words --------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """A figure as people write it: about four digits, thousands apart, `-` for unknown."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1e8:
        return f"{value:.4e}"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4g}"


def amount(value: float, unit: str) -> str:
    """A value with its unit, in the size that people would say: `5 min`, `2 MB`, `0.5 Mbit/s`."""
    for ladder in LADDERS:
        size = value * ladder.get(unit, 0.0)
        for name, least in reversed(ladder.items()):
            if size >= least:
                return f"{size / least:.4g} {name}"
    return f"{value:,.10g} {unit}".rstrip()


def is_resized(unit: str) -> bool:
    """Whether `amount` may say another unit."""
    return any(unit in ladder for ladder in LADDERS)


def sizes(size: Mapping[str, int]) -> str:
    """`50 nodes, 176 links, 1 demand`."""
    return ", ".join(f"{count:,} {what if count != 1 else _single(what)}" for what, count in size.items())


def _single(what: str) -> str:
    """The singular of an English plural that is formed by rule."""
    for ending, single in (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("s", "")):
        if what.endswith(ending):
            return what.removesuffix(ending) + single
    return what


def plain_table(title: str, caption: str | None = None) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )


def _status(run: Run) -> Text:
    if run.error is not None:
        return Text(type(run.error).__name__, style="red")
    good = run.plan is not None
    return Text(str(run.proof.status), style="green" if good else "red")


def unit_of(metric: Metric) -> str:
    """Which way is better, and the unit: `↓ ms`."""
    return f"{'↑' if metric.better == 'more' else '↓'} {metric.unit}".strip()


def differ(values: Sequence[float | None]) -> bool:
    """Whether known values tell anything apart, beyond what rounding does."""
    known = [value for value in values if value is not None]
    return len(known) > 1 and max(known) - min(known) > 1e-9 * max(abs(max(known)), abs(min(known)))


def which_best(metric: Metric, values: Sequence[float | None], among: Sequence[float | None]) -> list[bool]:
    """Which values are the best there are; where all agree there is nothing to tell, and none is."""
    known = [value for value in among if value is not None]
    if not differ(known):
        return [False] * len(values)
    best = max(known) if metric.better == "more" else min(known)
    return [value is not None and math.isclose(value, best, rel_tol=1e-9, abs_tol=1e-12) for value in values]


def _best_in_bold(
    metric: Metric, values: Sequence[float | None], among: Sequence[float | None]
) -> list[Text]:
    best = which_best(metric, values, among)
    return [
        Text(number(value), style="bold green" if is_best else "")
        for value, is_best in zip(values, best, strict=True)
    ]


def percent(share: float | None) -> str:
    """`54.1%`, `-` for unknown."""
    return "-" if share is None else f"{share:.1%}"


def _default(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
