"""Commands on published values and on coordination."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import completion
from planner.cli.options import JsonOption, PicturesOption, Reports, with_reports
from planner.cli.output import answer, print_json, report_compiling, say, say_line, write_files
from planner.errors import InputError

if TYPE_CHECKING:
    from planner.coordination.recipes import Measured
    from planner.reports.document import Page
    from planner.runs.reproduction import Reproduction


@with_reports
def reproduce(
    *,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="Such as multicast/figure_5a, or multicast for all of its targets.",
            autocompletion=completion.complete_target,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every target of every system.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller or shorter runs: seconds each.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Save verdicts.csv and each curve in this folder."),
    ] = None,
    reports: Reports,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce published tables and figures, or list them.

    Each published value stands beside ours, with a verdict.
    """
    from planner.reports import study_pages, terminal
    from planner.runs import reproduction

    if not targets and not everything:
        listed = reproduction.reproduce()
        answer(study_pages.targets_page(listed.targets), listed.to_dict, as_json)
        if not as_json:
            say("planner reproduce TARGET... runs some, --all runs all")
        return
    names = reproduction.ALL if everything or not targets else targets
    count = len(reproduction.find_targets(names))
    with report_compiling(), terminal.progress("targets", count) as advance:

        def show(one: Reproduction) -> None:
            if not as_json:
                terminal.show_part(study_pages.reproduction_part(one))
            advance()

        result = reproduction.reproduce(names, quick=quick, out=out, advance=show)
    if out is not None:
        say(f"saved verdicts and curves in {out}")
    write_files(lambda: study_pages.reproduction_page(result.targets), reports, pictures)
    if as_json:
        print_json(result.to_dict())
    else:
        terminal.show_part(study_pages.verdicts_part(result.targets))
    raise typer.Exit(result.exit_code)


Resources = Annotated[
    str | None,
    typer.Option(
        "--resources",
        metavar="OVERLAP",
        help="Overlap of the controlled devices: disjoint, partial or full.",
    ),
]
Information = Annotated[
    str | None,
    typer.Option(
        "--information",
        metavar="EXTENT",
        help="Information that can be shared: none, incomplete or complete.",
    ),
]
Separation = Annotated[
    str | None,
    typer.Option(
        "--separation",
        metavar="REASON",
        help="Reason for the split: layering, companies, departments, timescale, granularity, line-rate.",
    ),
]
DecideSeconds = Annotated[
    float | None, typer.Option("--decide-s", metavar="S", help="Seconds to compute a good decision.")
]
ReactSeconds = Annotated[
    float | None,
    typer.Option("--react-s", metavar="S", help="Seconds within which events need a response."),
]
InformationFlow = Annotated[
    str | None,
    typer.Option("--flow", metavar="WAYS", help="Flow of information: none, one-way or two-way."),
]
AgeSeconds = Annotated[
    float | None,
    typer.Option("--age-s", metavar="S", help="Seconds that information is old when it is used."),
]
Draws = Annotated[
    int,
    typer.Option(
        "--draws",
        metavar="N",
        min=0,
        help="With --measure: N seeds of each of a study's instances, for ranges; default: 0.",
    ),
]
MeasuredSystems = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        metavar="NAME",
        help="With --measure: only this system. Repeatable.",
        autocompletion=completion.complete_system,
    ),
]


@with_reports
def recipes(
    *,
    resources: Resources = None,
    information: Information = None,
    separation: Separation = None,
    flow: InformationFlow = None,
    decide_s: DecideSeconds = None,
    react_s: ReactSeconds = None,
    age_s: AgeSeconds = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Measure the value of coordination in every system.")
    ] = False,
    curves: Annotated[
        bool,
        typer.Option("--curves", help="Measure it also with older, noisier and coarser information."),
    ] = False,
    systems: MeasuredSystems = None,
    draws: Draws = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="STORE", help="With --measure: keep the runs in this store."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="With --measure: processes; default: one a core."),
    ] = None,
    reports: Reports,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show coordination mechanisms, and recommend one.

    The recommendation follows from the constraints of the control planes that the options give.
    """
    from planner.coordination import recipes as mechanisms
    from planner.reports import study_pages, terminal

    if measured or curves:
        with terminal.progress("runs") as advance:
            result = mechanisms.recipes(
                measure=True,
                curves=curves,
                systems=systems,
                draws=draws,
                out=out,
                workers=workers,
                advance=advance,
            )
        page = study_pages.coordination_page(result.systems, result.curves)
        write_files(lambda: page, reports, pictures)
        _show_values(page, result, as_json=as_json)
        return
    answers = (resources, information, separation, flow, decide_s, react_s, age_s)
    if all(answer_ is None for answer_ in answers):
        _show_design_space(as_json=as_json)
        return
    if resources is None:
        raise InputError("--resources: is missing; one of disjoint, partial, full")
    advice = mechanisms.recipes(
        resources=resources,
        information=information,
        separation=separation,
        flow=flow,
        decide_s=decide_s,
        react_s=react_s,
        age_s=age_s,
    )
    answer(study_pages.advice_page(advice), advice.to_dict, as_json)


def _show_values(page: Page, result: Measured, *, as_json: bool) -> None:
    """Show the measured values of coordination, with what they do not hold for."""
    answer(page, result.to_dict, as_json)
    if not as_json:
        for line in page.warnings:
            say_line(line, "yellow", err=False)


def _show_design_space(*, as_json: bool) -> None:
    """Show all mechanisms with the systems that they suit, and how to ask for one."""
    from planner.coordination import recipes as mechanisms
    from planner.reports import study_pages

    space = mechanisms.recipes()
    answer(study_pages.design_space_page(space.reviews), space.to_dict, as_json)
    if not as_json:
        say("planner recipes --resources ... --separation ... recommends one for your constraints")
