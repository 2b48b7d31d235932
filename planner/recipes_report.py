"""The design space, a recommendation, and what coordination is worth, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from planner.report import amount, console, number, percent, plain_table, unit_of

if TYPE_CHECKING:
    from planner.coordination import Curves, Measured
    from planner.recipes import Recommendation, Review


def show_design_space(reviews: Sequence[Review]) -> None:
    """The design space with what stands in each cell, then the systems that could do better."""
    from planner.recipes import SPACE, Information, Resources

    table = plain_table(
        "ways to coordinate, by what can be told and over what is decided",
        "below each mechanism: systems of Mukerjee 2018, Table 1.1",
    )
    table.add_column("information", no_wrap=True)
    for where in Resources:
        table.add_column(f"{where} resources", ratio=1)
    for can in Information:
        cells = []
        for where in Resources:
            here = [
                one.system.name
                for one in reviews
                if one.system.information is can and where in one.system.resources
            ]
            cell = Text(" / ".join(str(mechanism) for mechanism in SPACE[can, where]), style="bold")
            cell.append(Text("\n" + (", ".join(here) or "no prior work"), style="not bold italic dim"))
            cells.append(cell)
        table.add_row(str(can), *cells, end_section=True)
    console.print(table)
    console.print(Text("systems that could coordinate otherwise, by their constraints alone", style="bold"))
    for one in reviews:
        if not one.same:
            allowed = " / ".join(str(mechanism) for mechanism in one.recommended) or "outside the recipes"
            text = f"- {one.system.name}: {one.system.mechanism} today, {allowed} by constraint: {one.why}"
            console.print(text, markup=False, soft_wrap=True)
    console.print()


def show_coordination(measured: Sequence[Measured]) -> None:
    """What each system's designs are worth by what they know, and what the figures say."""
    for one in measured:
        asked = one.system.coordination
        assert asked is not None
        metric = one.system.metric(asked.performance)
        table = plain_table(
            f"{one.system.name}: {metric.name} {unit_of(metric)}",
            f"share: of the way from the first design to the best that is proven possible, "
            f"{number(one.bound)}" + (f"; cost: {asked.cost}" if asked.cost else ""),
        )
        table.padding = (0, 0)
        table.add_column("design", no_wrap=True)
        table.add_column("mechanism", min_width=12, max_width=12)
        for head in ("share", "worth", "cost", "answers\nin s", "messages", "bytes"):
            table.add_column(head, justify="right", no_wrap=True)
        for row in one.frame.to_dict(orient="records"):
            table.add_row(
                row["design"],
                row["mechanism"],
                percent(row["share"]),
                *(_short(row[figure], 4) for figure in ("performance", "cost")),
                *(_short(row[figure], 3) for figure in ("answers_in_s", "messages", "bytes")),
            )
        console.print(table)
    for one in measured:
        for sentence in one.sentences():
            console.print(f"- {sentence}", markup=False, soft_wrap=True)
    console.print()


def show_curves(curves: Sequence[Curves]) -> None:
    """What is left of each design's worth as what it is told gets worse, and what the curves say."""
    for one in curves:
        asked = one.system.coordination
        assert asked is not None
        metric = one.system.metric(asked.performance)
        for blur in asked.blurs:
            rows = one.frame[one.frame["parameter"] == blur.parameter]
            shares = one.measured.bound is not None and rows["share"].notna().any()
            what = "share of the way" if shares else metric.name
            title = f"{one.system.name}: {what} by {blur.kind} ({blur.parameter})"
            table = plain_table(title)
            table.min_width = min(len(title), console.width)
            table.caption = blur.about + (f"; median of {blur.seeds} seeds" if blur.seeds > 1 else "")
            table.padding = (0, 0)
            table.add_column("design", no_wrap=True)
            for value in blur.values:
                table.add_column(amount(value, blur.unit) if value else "0", justify="right")
            for design, its in rows.groupby("design", sort=False):
                cells = [percent(share) for share in its["share"]]
                if not shares:
                    cells = [number(worth) for worth in its["performance"]]
                table.add_row(str(design), *cells, style=None if its["told"].any() else "dim")
            console.print(table)
    for one in curves:
        for sentence in one.sentences():
            console.print(f"- {sentence}", markup=False, soft_wrap=True)
    console.print()


def show_advice(advice: Recommendation) -> None:
    """A mechanism, why, who does so, and what there is here to try it with."""
    names = " / ".join(str(mechanism) for mechanism in advice.mechanisms) or "outside the recipes"
    console.print(Text(names, style="bold"))
    for sentence in advice.why:
        console.print(f"- {sentence}", markup=False, soft_wrap=True)
    if advice.known:
        table = plain_table("\nsystems with the same constraints (Mukerjee 2018, Table 1.1)")
        for head in ("system", "context", "today"):
            table.add_column(head)
        for system in advice.known:
            table.add_row(system.name, system.context, str(system.mechanism))
        console.print(table)
    by_system: dict[str, list[str]] = {}
    for system_name, design in advice.designs:
        by_system.setdefault(system_name, []).append(design)
    if by_system:
        table = plain_table("designs here that coordinate so")
        table.add_column("system")
        table.add_column("designs")
        for system_name, designs in by_system.items():
            table.add_row(system_name, ", ".join(designs))
        console.print(table)


def _short(value: float | None, digits: int) -> str:
    """A figure in few letters: `388k`, `1.25M`, `0.021`."""
    if value is None:
        return "-"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 1e4):  # thousands have their four digits
            return f"{value / size:.{digits}g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.{digits}g}"
