"""Pages of studies: the value of coordination, the design space, and published values beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from planner.formatting import amount, number, percent, short_number
from planner.reports.document import Column, Kind, Page, Part, Table, Text
from planner.reports.metric_text import better

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner.contract.drawing import Drawing
    from planner.contract.system import System
    from planner.contract.targets import Target
    from planner.coordination.design_space import Information, Recommendation, Resources, Review
    from planner.coordination.measured_examples import Evidence
    from planner.coordination.measurement import Curves, Measurement
    from planner.runs.reproduction import JudgedValue, Reproduction

VERDICTS: Final[dict[str, Kind]] = {
    "reproduced": "good",
    "calibrated": "",
    "order only": "warning",
    "not reproduced": "bad",
    "not covered": "dim",
    "not available": "dim",
    "no number to compare": "dim",
    "shortened": "dim",
}


# --- coordination -------------------------------------------------------------------------


def coordination_page(measured: Sequence[Measurement], curves: Sequence[Curves] = ()) -> Page:
    """Return the measured value of coordination in each system, and its fall with worse information."""
    frame = pd.concat([measurement.frame for measurement in measured], ignore_index=True)

    def overview() -> list[go.Figure]:
        from planner.reports import charts

        return [charts.coordination(frame)]

    parts = [
        Part(
            title="All systems",
            tables=[_coordination_table(measurement) for measurement in measured],
            notes=[f"- {sentence}" for measurement in measured for sentence in measurement.sentences()],
            drawings=lambda: _shares_by_design(frame),
            figures=overview,
        )
    ]
    if curves:
        all_curves = pd.concat([curve.frame for curve in curves], ignore_index=True)
        parts += [
            _curves_part(curves, all_curves[all_curves["kind"] == kind], str(kind))
            for kind in dict.fromkeys(all_curves["kind"])
        ]
    failures = [Text(line, "bad") for curve in curves for line in curve.failures()]
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

    measured = frame[frame["share"].notna()]
    return [
        Curve(
            title=f"{system}: share of the possible gain",
            frame=pd.DataFrame({"design": rows["design"], "share": 100 * rows["share"].astype(float)}),
            units={"share": "%"},
            bars=True,
        )
        for system, rows in measured.groupby("system", sort=False)
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


def _coordination_table(measurement: Measurement) -> Table:
    """Return the designs of one system by the information they have."""
    study = measurement.system.studies.coordination
    assert study is not None
    metric = measurement.system.metric(study.performance)
    rows: list[list[Text | str]] = [
        [
            str(row["design"]),
            str(row["mechanism"]),
            Text(percent(row["share"]), "bad" if (row["share"] or 0.0) < 0 else ""),
            _range_of(row),
            *(short_number(row[name], 4) for name in ("performance", "cost")),
            *(short_number(row[name], 3) for name in ("answers_in_s", "messages", "bytes")),
        ]
        for row in measurement.frame.to_dict(orient="records")
    ]
    numeric = (
        ("share of gain", ""),
        ("range", ""),
        (metric.label, metric.unit),
        ("cost", ""),
        ("responds in", "s"),
    )
    return Table(
        title=f"{measurement.name}: {metric.label} {better(metric)}",
        columns=[
            Column(label="design", wrap=False),
            Column(label="mechanism"),
            *(Column(label=label, unit=unit, numeric=True) for label, unit in numeric),
            Column(label="messages", numeric=True),
            Column(label="bytes", numeric=True),
        ],
        rows=rows,
        caption="share of the gain from the first design to the best that is proven possible, "
        + metric.text(measurement.bound)
        + _say_draws(measurement.frame)
        + (f"; cost: {measurement.system.metric(study.cost).label}" if study.cost else ""),
        row_headers=1,
    )


def _say_draws(frame: pd.DataFrame) -> str:
    """Return a sentence on the share and its range over the draws; "" without draws."""
    draws = int(frame["draws"].max()) if len(frame) else 1
    return f"; share: median, and range, of {draws} draws" if draws > 1 else ""


def _range_of(row: Mapping[Any, Any]) -> str:
    """Return the range of a share over draws; - for one draw."""
    if row["draws"] < 2 or row["share_low"] is None:
        return "-"
    return f"{row['share_low']:.0%} to {row['share_high']:.0%}"


def _curves_part(curves: Sequence[Curves], rows: pd.DataFrame, kind: str) -> Part:
    from planner.reports.coordination_charts import MECHANISMS

    present = set(rows["mechanism"])

    def panels() -> list[go.Figure]:
        from planner.reports import charts

        return [
            charts.curves(system_rows, kind, legend=False)
            for _, system_rows in rows.groupby("system", sort=False)
        ]

    def pictures() -> list[go.Figure]:
        from planner.reports import charts

        return [charts.curves(rows, kind)]

    return Part(
        title=f"Performance with worse information: {kind}",
        tables=[_curve_table(curve, kind) for curve in curves if (curve.frame["kind"] == kind).any()],
        notes=[f"- {sentence}" for curve in curves for sentence in curve.sentences(kind)],
        drawings=lambda: [
            _curve_of_designs(system_rows, kind) for _, system_rows in rows.groupby("system", sort=False)
        ],
        figures=panels,
        pictures=pictures,
        key={name: colour for name, colour in MECHANISMS.items() if name in present},
        side_by_side=True,
    )


def _curve_table(curve: Curves, kind: str) -> Table:
    """Return the performance of each design of one system by the quality of its information."""
    study = curve.system.studies.coordination
    assert study is not None
    degradation = next(way for way in study.degradations if way.kind == kind)
    rows = curve.frame[curve.frame["parameter"] == degradation.parameter]
    has_shares = bool(rows["share"].notna().any())
    lines: list[list[Text | str]] = [
        [Text(str(design), _muted(design_rows)), *_performance_cells(design_rows, has_shares=has_shares)]
        for design, design_rows in rows.groupby("design", sort=False)
    ]
    what = "share of gain" if has_shares else curve.system.metric(study.performance).label
    seeds = f"; median of {degradation.seeds} seeds" if degradation.seeds > 1 else ""
    values = [amount(value, degradation.unit) if value else "0" for value in degradation.values]
    return Table(
        title=f"{curve.name}: {what} by {degradation.kind}",
        columns=[
            Column(label="design", wrap=False),
            *(Column(label=value, numeric=True) for value in values),
        ],
        rows=lines,
        caption=degradation.about + seeds,
        row_headers=1,
    )


def _muted(rows: pd.DataFrame) -> Kind:
    """Return the kind of the text of a design: dim where its information has no such quality."""
    return "" if rows["has_parameter"].any() else "dim"


def _performance_cells(rows: pd.DataFrame, *, has_shares: bool) -> list[Text]:
    """Return the share of the possible gain by value of the parameter, or the performance without one."""
    muted = _muted(rows)
    if has_shares:
        return [Text(percent(share), "bad" if (share or 0.0) < 0 else muted) for share in rows["share"]]
    return [Text(number(value), muted) for value in rows["performance"]]


# --- the design space ---------------------------------------------------------------------


def design_space_page(reviews: Sequence[Review]) -> Page:
    """Return the design space with the systems in each cell, and those that could coordinate otherwise."""
    from planner.coordination.design_space import SPACE, Information, Resources
    from planner.coordination.worst_cases import load_worst_cases

    rows: list[list[Text | str]] = []
    for information in Information:
        cells: list[Text | str] = [str(information)]
        for resources in Resources:
            mechanisms = " / ".join(str(mechanism) for mechanism in SPACE[information, resources])
            here = _systems_by_flow(reviews, information, resources)
            cells.append(Text(f"{mechanisms}\n{here or 'no prior work'}", "strong"))
        rows.append(cells)
    table = Table(
        title="Mechanisms by the information that can be shared and the resources that are decided on",
        columns=[
            Column(label="information", wrap=False),
            *(Column(label=f"{resources} resources", share=1) for resources in Resources),
        ],
        rows=rows,
        caption="below each mechanism: systems of Mukerjee 2018, Table 1.1, by flow of information",
        lines_after=frozenset(range(len(rows))),
    )
    others: list[Text | str] = [
        f"- {review.system.name}: {review.system.mechanism} today, "
        f"{' / '.join(str(mechanism) for mechanism in review.recommended) or 'outside the recipes'} "
        f"by constraint: {review.why}"
        for review in reviews
        if not review.same
    ]
    head = Text("Systems that could coordinate otherwise, by their constraints alone", "strong")
    worst = [f"- {case.words()}" for case in load_worst_cases()]
    if worst:
        others += [Text("Hierarchical partitioning in its worst event", "strong"), *worst]
    parts = [Part(tables=[table], notes=[head, *others]), prior_systems_part(reviews)]
    return Page(title="Ways to coordinate", parts=parts)


def prior_systems_part(reviews: Sequence[Review]) -> Part:
    """Return the systems of Table 1.1: their decisions, wrong assumptions and problems, and examples."""
    systems = [review.system for review in reviews]
    lines = frozenset(range(len(systems)))
    decisions = Table(
        title="Systems of Mukerjee 2018, Table 1.1: information and decisions",
        columns=[
            Column(label=label)
            for label in ("system", "mechanism", "shared", "flow", "decision by", "resources")
        ],
        rows=[
            [
                system.name,
                str(system.mechanism),
                str(system.information),
                " or ".join(str(flow) for flow in system.flows),
                system.decides,
                " or ".join(str(resources) for resources in system.resources),
            ]
            for system in systems
        ],
        caption="shared: the information that the control planes share today",
        lines_after=lines,
    )
    problems = Table(
        title="Systems of Mukerjee 2018, Table 1.1: assumptions that may be wrong, and their harm",
        columns=[Column(label=label) for label in ("system", "control planes", "assumption", "problems")],
        rows=[
            [system.name, system.control_planes, system.assumptions, system.problems] for system in systems
        ],
        lines_after=lines,
    )
    examples = Table(
        title="Examples of them in planner",
        columns=[Column(label="system"), Column(label="command, or the reason why there is none", share=1)],
        rows=[[system.name, system.runs] for system in systems],
        lines_after=lines,
    )
    return Part(tables=[decisions, problems, examples])


def _systems_by_flow(reviews: Sequence[Review], information: Information, resources: Resources) -> str:
    """Return the names of the systems in a cell of the design space, by the flow of information."""
    by_flow: dict[str, list[str]] = {}
    for review in reviews:
        system = review.system
        if system.information is information and resources in system.resources:
            by_flow.setdefault(" or ".join(str(flow) for flow in system.flows), []).append(system.name)
    if list(by_flow) == ["none"]:
        return ", ".join(by_flow["none"])
    return "; ".join(f"{flow}: {', '.join(names)}" for flow, names in by_flow.items())


def advice_page(advice: Recommendation) -> Page:
    """Return the mechanism that suits given constraints, why, who uses it, and designs to try it with."""
    names = " / ".join(str(mechanism) for mechanism in advice.mechanisms) or "outside the recipes"
    tables = []
    if advice.known:
        tables.append(
            Table(
                title="Systems with the same constraints (Mukerjee 2018, Table 1.1)",
                columns=[Column(label=label) for label in ("system", "context", "today", "flow")],
                rows=[
                    [
                        system_.name,
                        system_.context,
                        str(system_.mechanism),
                        " or ".join(str(flow) for flow in system_.flows),
                    ]
                    for system_ in advice.known
                ],
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
    parts = [Part(sentences=sentences)]
    if advice.evidence is not None:
        parts.append(_gain_part(advice.evidence, advice.worst_sentences()))
    return Page(title="Recommendation", parts=[*parts, Part(tables=tables)])


def _gain_part(evidence: Evidence, worst: Sequence[str]) -> Part:
    """Return the gain of a mechanism in a measured example, beside the other designs of its system.

    worst  sentences on measured worst cases over events
    """
    example = evidence.example
    quality = f", {example.quality()}" if example.kind else ""
    rows: list[list[Text | str]] = []
    for rival in evidence.rivals:
        kind: Kind = "strong" if rival.design == example.design else ""
        rows.append(
            [
                Text(rival.names[1], kind),
                Text(rival.mechanism, kind),
                Text(percent(rival.share), "bad" if (rival.share or 0.0) < 0 else kind),
                "-" if rival.low is None else f"{rival.low:.0%} to {rival.high:.0%}",
            ]
        )
    draws = f"median and range of {example.draws} {example.drawn}; " if example.draws > 1 else ""
    table = Table(
        title=f"{example.names[0]}{quality}: share of the possible gain",
        columns=[
            Column(label="design", wrap=False),
            Column(label="mechanism"),
            Column(label="share of gain", numeric=True),
            Column(label="range", numeric=True),
        ],
        rows=rows,
        caption=f"{draws}0%: the first design, without coordination; 100%: the proven bound with all "
        "information; below 0%: worse than no coordination",
        row_headers=1,
    )
    return Part(
        title="What it gains",
        sentences=[f"- {sentence}" for sentence in (*evidence.sentences(), *worst)],
        tables=[table],
    )


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


def reproduction_part(result: Reproduction, *, folded: bool = False) -> Part:
    """Return a target's published values beside ours."""
    names = Counter(row.quantity for row in result.rows)
    labels = ("value", "published", "ours", "ratio", "", "verdict")
    table = Table(
        title=f"{result.label}: {result.target.about}",
        columns=[
            Column(label=label, numeric=label in ("published", "ours", "ratio"), wrap=label != "verdict")
            for label in labels
        ],
        rows=[_judged_row(row, is_unique=names[row.quantity] == 1) for row in result.rows],
    )
    notes = [Text(f"- {row.quantity}: {row.note}", "dim") for row in result.rows if row.note]
    if result.error is not None:
        notes.append(Text(f"{result.name}: {result.error}", "bad"))

    return Part(
        title=table.title, tables=[table], notes=notes, drawings=lambda: list(result.curves), folded=folded
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


def verdicts_part(reproductions: Sequence[Reproduction], *, in_titles: bool = False) -> Part:
    """Return the number of values of each target with each verdict that occurs.

    in_titles  name targets by their system's title and their place in the paper
    """
    counts = [reproduction.counts() for reproduction in reproductions]
    verdicts = [verdict for verdict in VERDICTS if any(of_target[verdict] for of_target in counts)]
    rows: list[list[Text | str]] = [
        [
            reproduction.label if in_titles else reproduction.name,
            *(str(of_target[verdict] or "") for verdict in verdicts),
            number(reproduction.seconds),
        ]
        for reproduction, of_target in zip(reproductions, counts, strict=True)
    ]
    lines_after: frozenset[int] = frozenset()
    if len(reproductions) > 1:
        lines_after = frozenset({len(rows) - 1})
        totals = [str(sum(of_target[verdict] for of_target in counts)) for verdict in verdicts]
        seconds = sum(reproduction.seconds for reproduction in reproductions)
        rows.append(["all", *totals, number(seconds)])
    table = Table(
        title="Verdicts",
        columns=[
            Column(label="target", wrap=False),
            *(Column(label=verdict, numeric=True) for verdict in verdicts),
            Column(label="time", unit="s", numeric=True),
        ],
        rows=rows,
        lines_after=lines_after,
        row_headers=1,
    )
    return Part(title="Verdicts", tables=[table])


def reproduction_page(reproductions: Sequence[Reproduction]) -> Page:
    """Return published values beside ours, target by target."""
    return Page(
        title="Published values beside ours" if len(reproductions) != 1 else reproductions[0].name,
        about="Tables and figures of the papers, run again.",
        parts=[
            verdicts_part(reproductions),
            *(
                reproduction_part(reproduction, folded=len(reproductions) > 1)
                for reproduction in reproductions
            ),
        ],
        warnings=[
            f"{reproduction.name}: {reproduction.error}"
            for reproduction in reproductions
            if reproduction.error is not None
        ],
    )
