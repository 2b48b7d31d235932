"""Pages of studies: the value of coordination, the design space, and published values beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pandas as pd

from planner.formatting import amount, number, percent, short_number
from planner.reports.document import Column, Kind, Page, Part, Table, Text
from planner.reports.metric_text import better

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.system import System
    from planner.contract.targets import Target
    from planner.coordination.design_space import Recommendation, Review
    from planner.coordination.measurement import Curves, Measurement
    from planner.runs.reproduction import JudgedValue, Reproduction

VERDICTS: Final[dict[str, Kind]] = {
    "reproduced": "good",
    "calibrated": "",
    "order only": "warning",
    "not reproduced": "bad",
    "not available": "dim",
    "no number to compare": "dim",
    "shortened": "dim",
}


# --- coordination -------------------------------------------------------------------------


def coordination_page(measured: Sequence[Measurement], curves: Sequence[Curves] = ()) -> Page:
    """Return the measured value of coordination in each system, and how it falls with worse information."""
    frame = pd.concat([one.frame for one in measured], ignore_index=True)

    def overview() -> list[go.Figure]:
        from planner.reports import charts

        return [charts.coordination(frame)]

    parts = [
        Part(
            title="All systems",
            tables=[_coordination_table(one) for one in measured],
            notes=[f"- {sentence}" for one in measured for sentence in one.sentences()],
            drawings=lambda: _shares_by_design(frame),
            figures=overview,
        )
    ]
    if curves:
        whole = pd.concat([one.frame for one in curves], ignore_index=True)
        parts += [
            _curves_part(curves, whole[whole["kind"] == kind], str(kind))
            for kind in dict.fromkeys(whole["kind"])
        ]
    failures = [Text(line, "bad") for one in curves for line in one.failures()]
    if failures:
        parts.append(Part(notes=failures))
    return Page(
        title="The value of coordination",
        about="Performance as a share of the gain from no coordination to the best that is proven possible.",
        parts=parts,
    )


def _shares_by_design(frame: pd.DataFrame) -> list[Drawing]:
    """Return bars of the share of the possible gain that each design of a system achieves."""
    from planner.contract.drawing import Curve

    known = frame[frame["share"].notna()]
    return [
        Curve(
            title=f"{system}: share of the possible gain",
            frame=pd.DataFrame({"design": own["design"], "share": 100 * own["share"].astype(float)}),
            units={"share": "%"},
            bars=True,
        )
        for system, own in known.groupby("system", sort=False)
    ]


def _curve_of_designs(rows: pd.DataFrame, kind: str) -> Drawing:
    """Return the performance of one system's designs over the age, noise or granularity of information."""
    from planner.contract.drawing import Curve

    has_shares = rows["share"].notna().any()
    column = "share" if has_shares else "performance"
    wide = rows.pivot_table(
        index="value", columns="design", values=column, aggfunc="first", sort=False
    ).astype(float)
    frame = (100 * wide if has_shares else wide).rename_axis(index=kind, columns=None).reset_index()
    unit = "%" if has_shares else ""
    designs = dict.fromkeys(map(str, wide.columns), unit)
    what = "share of the possible gain" if has_shares else "performance"
    title = f"{rows['system'].iloc[0]}: {what} by {kind}"
    return Curve(title=title, frame=frame, units={**designs, kind: str(rows["unit"].iloc[0])})


def _coordination_table(one: Measurement) -> Table:
    """Return the designs of one system by the information they have."""
    study = one.system.studies.coordination
    assert study is not None
    metric = one.system.metric(study.performance)
    rows: list[list[Text | str]] = [
        [
            str(row["design"]),
            str(row["mechanism"]),
            Text(percent(row["share"]), "bad" if (row["share"] or 0.0) < 0 else ""),
            *(short_number(row[name], 4) for name in ("performance", "cost")),
            *(short_number(row[name], 3) for name in ("answers_in_s", "messages", "bytes")),
        ]
        for row in one.frame.to_dict(orient="records")
    ]
    numeric = (("share of gain", ""), (metric.label, metric.unit), ("cost", ""), ("responds in", "s"))
    return Table(
        title=f"{one.system.name}: {metric.label} {better(metric)}",
        columns=[
            Column(label="design", wrap=False),
            Column(label="mechanism"),
            *(Column(label=label, unit=unit, numeric=True) for label, unit in numeric),
            Column(label="messages", numeric=True),
            Column(label="bytes", numeric=True),
        ],
        rows=rows,
        caption="share of the gain from the first design to the best that is proven possible, "
        + number(one.bound)
        + (f"; cost: {one.system.metric(study.cost).label}" if study.cost else ""),
        row_headers=1,
    )


def _curves_part(curves: Sequence[Curves], rows: pd.DataFrame, kind: str) -> Part:
    from planner.reports.coordination_charts import MECHANISMS

    present = set(rows["mechanism"])

    def panels() -> list[go.Figure]:
        from planner.reports import charts

        return [charts.curves(own, kind, legend=False) for _, own in rows.groupby("system", sort=False)]

    def pictures() -> list[go.Figure]:
        from planner.reports import charts

        return [charts.curves(rows, kind)]

    return Part(
        title=f"Performance with worse information: {kind}",
        tables=[_curve_table(one, kind) for one in curves if (one.frame["kind"] == kind).any()],
        notes=[f"- {sentence}" for one in curves for sentence in one.sentences(kind)],
        drawings=lambda: [_curve_of_designs(own, kind) for _, own in rows.groupby("system", sort=False)],
        figures=panels,
        pictures=pictures,
        key={name: colour for name, colour in MECHANISMS.items() if name in present},
        side_by_side=True,
    )


def _curve_table(one: Curves, kind: str) -> Table:
    """Return how each design of one system performs as its information gets worse."""
    study = one.system.studies.coordination
    assert study is not None
    degradation = next(way for way in study.degradations if way.kind == kind)
    rows = one.frame[one.frame["parameter"] == degradation.parameter]
    has_shares = rows["share"].notna().any()
    lines: list[list[Text | str]] = []
    for design, own in rows.groupby("design", sort=False):
        muted: Kind = "" if own["has_parameter"].any() else "dim"
        if has_shares:
            cells = [Text(percent(share), "bad" if (share or 0.0) < 0 else muted) for share in own["share"]]
        else:
            cells = [Text(number(value), muted) for value in own["performance"]]
        lines.append([Text(str(design), muted), *cells])
    what = "share of gain" if has_shares else one.system.metric(study.performance).label
    seeds = f"; median of {degradation.seeds} seeds" if degradation.seeds > 1 else ""
    values = [amount(value, degradation.unit) if value else "0" for value in degradation.values]
    return Table(
        title=f"{one.system.name}: {what} by {degradation.kind} ({degradation.parameter})",
        columns=[
            Column(label="design", wrap=False),
            *(Column(label=value, numeric=True) for value in values),
        ],
        rows=lines,
        caption=degradation.about + seeds,
        row_headers=1,
    )


# --- the design space ---------------------------------------------------------------------


def design_space_page(reviews: Sequence[Review]) -> Page:
    """Return the design space with the systems in each cell, and those that could coordinate otherwise."""
    from planner.coordination.design_space import SPACE, Information, Resources

    rows: list[list[Text | str]] = []
    for information in Information:
        cells: list[Text | str] = [str(information)]
        for resources in Resources:
            here = [
                one.system.name
                for one in reviews
                if one.system.information is information and resources in one.system.resources
            ]
            mechanisms = " / ".join(str(mechanism) for mechanism in SPACE[information, resources])
            cells.append(Text(f"{mechanisms}\n{', '.join(here) or 'no prior work'}", "strong"))
        rows.append(cells)
    table = Table(
        title="Mechanisms by the information that can be shared and the resources that are decided on",
        columns=[
            Column(label="information", wrap=False),
            *(Column(label=f"{resources} resources", share=1) for resources in Resources),
        ],
        rows=rows,
        caption="below each mechanism: systems of Mukerjee 2018, Table 1.1",
        lines_after=frozenset(range(len(rows))),
    )
    others = [
        f"- {one.system.name}: {one.system.mechanism} today, "
        f"{' / '.join(str(mechanism) for mechanism in one.recommended) or 'outside the recipes'} "
        f"by constraint: {one.why}"
        for one in reviews
        if not one.same
    ]
    head = Text("Systems that could coordinate otherwise, by their constraints alone", "strong")
    return Page(title="Ways to coordinate", parts=[Part(tables=[table], notes=[head, *others])])


def advice_page(advice: Recommendation) -> Page:
    """Return the mechanism that suits given constraints, why, who uses it, and designs to try it with."""
    names = " / ".join(str(mechanism) for mechanism in advice.mechanisms) or "outside the recipes"
    tables = []
    if advice.known:
        tables.append(
            Table(
                title="Systems with the same constraints (Mukerjee 2018, Table 1.1)",
                columns=[Column(label=label) for label in ("system", "context", "today")],
                rows=[[one.name, one.context, str(one.mechanism)] for one in advice.known],
            )
        )
    by_system: dict[str, list[str]] = {}
    for system_name, design in advice.designs:
        by_system.setdefault(system_name, []).append(design)
    if by_system:
        tables.append(
            Table(
                title="Designs of planner with this mechanism",
                columns=[Column(label="system"), Column(label="designs")],
                rows=[[name, ", ".join(designs)] for name, designs in by_system.items()],
            )
        )
    sentences: list[Text | str] = [Text(names, "strong"), *(f"- {sentence}" for sentence in advice.why)]
    return Page(title="Recommendation", parts=[Part(sentences=sentences, tables=tables)])


# --- published values ---------------------------------------------------------------------


def targets_page(targets: Sequence[tuple[System, Target]]) -> Page:
    """Return the tables and figures of papers that can be run again."""
    table = Table(
        title="Targets",
        columns=[
            *(Column(label=label) for label in ("target", "place", "what it shows")),
            Column(label="values", numeric=True),
        ],
        rows=[
            [f"{system.name}/{target.name}", target.place, target.about, str(len(target.rows))]
            for system, target in targets
        ],
    )
    return Page(title="Targets", parts=[Part(tables=[table])])


def reproduction_part(done: Reproduction, *, folded: bool = False) -> Part:
    """Return a target's published values beside ours."""
    names = Counter(row.quantity for row in done.rows)
    labels = ("value", "published", "ours", "ratio", "", "verdict")
    table = Table(
        title=f"{done.name}, {done.target.place}: {done.target.about}",
        columns=[
            Column(label=label, numeric=label in ("published", "ours", "ratio"), wrap=label != "verdict")
            for label in labels
        ],
        rows=[_judged_row(row, is_unique=names[row.quantity] == 1) for row in done.rows],
    )
    notes = [Text(f"- {row.quantity}: {row.note}", "dim") for row in done.rows if row.note]
    if done.error is not None:
        notes.append(Text(f"{done.name}: {done.error}", "bad"))

    return Part(
        title=table.title, tables=[table], notes=notes, drawings=lambda: list(done.curves), folded=folded
    )


def _judged_row(row: JudgedValue, *, is_unique: bool) -> list[Text | str]:
    ours = ("holds" if row.ours else "does not hold") if isinstance(row.ours, bool) else number(row.ours)
    return [
        row.quantity if is_unique else f"{row.quantity}: {row.condition}",
        _published(row),
        ours,
        number(row.ratio),
        row.unit if isinstance(row.published, float) else "",
        Text(str(row.verdict), VERDICTS[str(row.verdict)]),
    ]


def _published(row: JudgedValue) -> str:
    """Return a published value as text; a year has no separator."""
    if isinstance(row.published, str):
        return row.published
    is_year = row.unit == "year" and row.published is not None
    return f"{row.published:.0f}" if is_year else number(row.published)


def verdicts_part(done: Sequence[Reproduction]) -> Part:
    """Return how many values of each target have each verdict."""
    rows: list[list[Text | str]] = [
        [one.name, *(str(count or "") for count in one.counts().values()), number(one.seconds)]
        for one in done
    ]
    lines_after: frozenset[int] = frozenset()
    if len(done) > 1:
        totals = [sum(counts) for counts in zip(*(one.counts().values() for one in done), strict=True)]
        lines_after = frozenset({len(rows) - 1})
        rows.append(["all", *map(str, totals), number(sum(one.seconds for one in done))])
    table = Table(
        title="Verdicts",
        columns=[
            Column(label="target", wrap=False),
            *(Column(label=verdict, numeric=True) for verdict in VERDICTS),
            Column(label="time", unit="s", numeric=True),
        ],
        rows=rows,
        lines_after=lines_after,
        row_headers=1,
    )
    return Part(title="Verdicts", tables=[table])


def reproduction_page(done: Sequence[Reproduction]) -> Page:
    """Return published values beside ours, target by target."""
    return Page(
        title="Published values beside ours" if len(done) != 1 else done[0].name,
        about="Tables and figures of the papers, run again.",
        parts=[verdicts_part(done), *(reproduction_part(one, folded=len(done) > 1) for one in done)],
        warnings=[f"{one.name}: {one.error}" for one in done if one.error is not None],
    )
