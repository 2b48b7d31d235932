"""Commands on published values and on coordination."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planner.cli import completion
from planner.cli.options import HtmlOption, JsonOption, PicturesOption
from planner.cli.output import answer, print_json, report_compiling, say, say_line, write_files
from planner.errors import InputError


def reproduce(
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
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce published tables and figures, or list them.

    Each published value stands beside ours, with a verdict.
    """
    from planner.reports import study_pages, terminal
    from planner.runs import reproduction

    chosen = reproduction.find_targets(None if everything or not targets else targets)
    if not targets and not everything:
        names = [
            {"target": f"{system.name}/{target.name}", "place": target.place, "about": target.about}
            for system, target in chosen
        ]
        answer(study_pages.targets_page(chosen), lambda: names, as_json)
        if not as_json:
            say("planner reproduce TARGET... runs some, --all runs all")
        return
    done = []
    with report_compiling(), terminal.progress("targets", len(chosen)) as advance:
        for system, target in chosen:
            done.append(reproduction.reproduce(system, target, quick=quick))
            if not as_json:
                terminal.show_part(study_pages.reproduction_part(done[-1]))
            advance()
    if out is not None:
        reproduction.save(done, out)
        say(f"saved verdicts and curves in {out}")
    write_files(lambda: study_pages.reproduction_page(done), html, pictures)
    if as_json:
        print_json([one.to_dict() for one in done])
    else:
        terminal.show_part(study_pages.verdicts_part(done))
    raise typer.Exit(next((one.error.exit_code for one in done if one.error is not None), 0))


def recipes(
    resources: Annotated[
        str | None,
        typer.Option(
            "--resources",
            metavar="OVERLAP",
            help="Overlap of the controlled devices: disjoint, partial or full.",
        ),
    ] = None,
    information: Annotated[
        str | None,
        typer.Option(
            "--information",
            metavar="EXTENT",
            help="Information that can be shared: none, incomplete or complete.",
        ),
    ] = None,
    separation: Annotated[
        str | None,
        typer.Option(
            "--separation",
            metavar="REASON",
            help="Reason for the split: layering, companies, departments, timescale, granularity, line-rate.",
        ),
    ] = None,
    decide_s: Annotated[
        float | None, typer.Option("--decide-s", metavar="S", help="Seconds to compute a good decision.")
    ] = None,
    react_s: Annotated[
        float | None,
        typer.Option("--react-s", metavar="S", help="Seconds within which events need a response."),
    ] = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Measure the value of coordination in every system.")
    ] = False,
    curves: Annotated[
        bool,
        typer.Option("--curves", help="Measure it also with older, noisier and coarser information."),
    ] = False,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            metavar="NAME",
            help="With --measure: only this system. Repeatable.",
            autocompletion=completion.complete_system,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="STORE", help="With --measure: keep the runs in this store."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="With --measure: processes; default: one a core."),
    ] = None,
    html: HtmlOption = None,
    pictures: PicturesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show coordination mechanisms, and recommend one.

    The recommendation follows from the constraints of the control planes that the options give.
    """
    from planner.coordination import design_space
    from planner.reports import study_pages

    if measured or curves:
        _measure(systems, curves, out, workers, html, pictures, as_json)
        return
    given = (resources, information, separation, decide_s, react_s)
    if all(one is None for one in given):
        reviews = design_space.review()
        answer(study_pages.design_space_page(reviews), lambda: [one.to_dict() for one in reviews], as_json)
        if not as_json:
            say("planner recipes --resources ... --separation ... recommends one for your constraints")
        return
    if resources is None:
        raise InputError("--resources: is missing; one of disjoint, partial, full")
    advice = design_space.recommend(
        resources=resources,
        information=information,
        separation=separation,
        decide_s=decide_s,
        react_s=react_s,
    )
    answer(study_pages.advice_page(advice), advice.to_dict, as_json)


def _measure(
    systems: list[str] | None,
    with_curves: bool,
    out: Path | None,
    workers: int | None,
    html: Path | None,
    pictures: Path | None,
    as_json: bool,
) -> None:
    """Measure systems, with curves where requested, and show the results."""
    from planner.coordination import measurement
    from planner.reports import study_pages, terminal

    measured_curves: list[measurement.Curves] = []
    with terminal.progress("runs") as advance:
        if with_curves:
            measured_curves = measurement.curves(systems, out=out, workers=workers, advance=advance)
            found = [one.measured for one in measured_curves]
        else:
            found = measurement.measure(systems, out=out, workers=workers, advance=advance)
    page = study_pages.coordination_page(found, measured_curves)
    write_files(lambda: page, html, pictures)
    if as_json:
        designs = [row for one in found for row in one.frame.to_dict(orient="records")]
        if with_curves:
            rows = [row for one in measured_curves for row in one.frame.to_dict(orient="records")]
            sentences = [sentence for one in found for sentence in one.sentences()]
            sentences += [sentence for one in measured_curves for sentence in one.sentences()]
            print_json({"designs": designs, "curves": rows, "sentences": sentences})
        else:
            print_json(designs)
        return
    terminal.show(page)
    for line in page.warnings:
        say_line(line, "yellow", err=False)
