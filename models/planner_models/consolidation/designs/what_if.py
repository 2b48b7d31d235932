"""Explanation of a plan: limits that bind, the design again without them, and the largest machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.metrics import MONEY
from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import amount, counted, percent
from planner.options import Options
from planner_models.consolidation.plan.drains import Drain, list_drains, list_held_hosts, say_targets
from planner_models.consolidation.plan.losses import replay_losses
from planner_models.consolidation.plan.metrics import measure
from planner_models.consolidation.plan.reading import Reading, read_plan
from planner_models.consolidation.problem.adjustments import adjust
from planner_models.consolidation.problem.problem import Consolidation

MAX_TRIED_SHAPES: Final = 60
"""Shapes of machines up to which the design runs again without each limit."""
SAME: Final = 1e-6


def explain(
    problem: Consolidation,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="largest number of rows of a table")] = 10,
    tried: Annotated[bool, Field(description="whether the design runs again without each limit")] = True,
    options: Options = Options(),
) -> Explanation:
    """Explain the price of a plan: its bound, limits that bind, and the cost of rules and losses."""
    reading = read_plan(problem, decided.plan)
    metrics = measure(problem, decided.plan, None)
    sentences = [_say_price(reading, decided, metrics), _say_use(reading), *_say_losses(reading)]
    sections = [_tabulate_use(reading, rows), _tabulate_shapes(reading, rows)]
    drains = list_drains(reading, decided.plan)
    if drains:
        sentences.append(_say_drains(drains))
        sections = [_tabulate_drains(reading, drains, rows), _tabulate_held(reading, rows), *sections]
    if tried and len(problem.machines) <= MAX_TRIED_SHAPES:
        trials = _try_without(problem, decided, options)
        sentences += _say_trials(trials, metrics["price_per_h"] or 0.0, metrics["score"])
        if len(trials):
            units = {"price": f"{MONEY}/h", "lowest_throughput": "vCPUs"}
            sections.append(Section(title="The design again without a limit", frame=trials, units=units))
    return Explanation(
        sentences=tuple(sentence for sentence in sentences if sentence),
        sections=tuple(section for section in sections if len(section.frame)),
    )


def _say_price(reading: Reading, decided: Decided, metrics: dict[str, float | None]) -> str:
    """Return the number of hosts, their price, and the bound."""
    hosts = counted(int(reading.hosts.sum()), "hosts")
    price = metrics["price_per_h"] or 0.0
    words = f"The machines are on {hosts} for {amount(price, f'{MONEY}/h')}"
    proof = decided.decision.proof
    if proof.metric == "price_per_h" and proof.bound is not None and price > 0:
        gap = max(0.0, 1 - proof.bound / price)
        which = f"no plan with {proof.bound_scope}" if proof.bound_scope else "no plan"
        if gap <= SAME:
            return f"{words}; {which} costs less."
        step = 10.0 ** (math.floor(math.log10(proof.bound)) - 5) if proof.bound > 0 else 1.0
        bound = amount(math.floor(proof.bound / step + 1e-6) * step, f"{MONEY}/h")  # six digits, not above
        return f"{words}; {which} costs less than {bound}, {percent(gap, 3)} below."
    return words + "."


def _use_shares(reading: Reading) -> list[tuple[str, float]]:
    """Return the share of each resource that machines and slots take of the used hosts."""
    problem = reading.problem
    names = ("threads", "memory", *problem.resources)
    shares = []
    for column, name in enumerate(names):
        capacity = np.array(
            [
                min(float(shape.node[:, column].sum()), float(shape.whole[column]))
                for shape in problem.host_shapes
            ]
        )[reading.host_type]
        total = float(reading.hosts @ capacity)
        if total > 0:
            shares.append((name, float(reading.hosts @ reading.host_use[:, column]) / total))
    return sorted(shares, key=lambda item: -item[1])


def _say_use(reading: Reading) -> str:
    """Return the resource that is used most, and the next."""
    shares = _use_shares(reading)
    if not shares:
        return "No host is used."
    first, *others = [f"{share:.0%} of the {name}" for name, share in shares]
    return f"Machines take {first} of the used hosts" + (f", and {others[0]}." if others else ".")


def _say_losses(reading: Reading) -> list[str]:
    """Return the worst loss, and the share of machines that restart."""
    outcomes = replay_losses(reading)
    if not outcomes:
        return []
    worst = outcomes[0]
    name = f"{worst.loss.domain} {worst.loss.name}".strip()
    if worst.stopped.sum() <= 0:
        return ["After every loss that is to be survived, all machines restart."]
    number = counted(int(worst.stopped.sum()), "machines")
    return [f"After the loss of {name}, {number} of {int(worst.loss.lost.sum()):,} do not restart."]


def _tabulate_use(reading: Reading, rows: int) -> Section:
    frame = pd.DataFrame(
        [(name, 100 * share) for name, share in _use_shares(reading)][:rows], columns=["resource", "use"]
    )
    return Section(title="Use of the hosts by resource", frame=frame, units={"use": "%"})


def _tabulate_shapes(reading: Reading, rows: int) -> Section:
    """Return the shapes with the most threads."""
    problem = reading.problem
    frame = pd.DataFrame(
        {
            "machine": problem.machine_index.astype(str),
            "machines": reading.placed,
            "vcpus": problem.vcpus,
            "memory": problem.memory_gb,
            "refused": reading.refused,
        }
    )
    order = np.argsort(-(problem.vcpus * reading.placed), kind="stable")[:rows]
    return Section(
        title="Machines by their vCPUs",
        frame=frame.iloc[order].reset_index(drop=True),
        units={"memory": "GB"},
    )


def _say_drains(drains: Sequence[Drain]) -> str:
    """Return a sentence on the hosts that can be switched off, their machines' memory, and the others."""
    ready = [drain for drain in drains if not drain.held]
    memory_gb = sum(drain.memory_gb for drain in ready)
    number = counted(len(ready), "hosts")
    words = f"{number} of today can be drained; their machines have {amount(memory_gb, 'GB')}"
    refused = [drain for drain in drains if drain.held]
    if not refused:
        return words + "."
    first = refused[0]
    return (
        f"{words}. {counted(len(refused), 'hosts')} that this plan empties must not be drained: machines of "
        f"'{first.held[0]}' on {first.host} may not be moved; `repack` keeps them."
    )


def _tabulate_drains(reading: Reading, drains: Sequence[Drain], rows: int) -> Section:
    """Return the hosts to drain in their order, with the machines that leave them and where they go."""
    labels = reading.problem.machine_index.astype(str).tolist()
    columns: dict[str, list[Any]] = {
        "host": [drain.host for drain in drains],
        "wave": [drain.wave for drain in drains],
        "machines": [say_targets(drain) or _say_machines(labels, drain.machines) for drain in drains],
        "memory": [drain.memory_gb for drain in drains],
        "refused": [f"may not move: {', '.join(drain.held)}" if drain.held else "" for drain in drains],
    }
    if np.isnan(columns["wave"]).all():
        del columns["wave"]
    if not any(columns["refused"]):
        del columns["refused"]
    return Section(title="Hosts to drain", frame=pd.DataFrame(columns).head(rows), units={"memory": "GB"})


def _say_machines(labels: Sequence[str], machines: Ints) -> str:
    texts = zip(labels, machines.tolist(), strict=True)
    return ", ".join(f"{number} x {label}" for label, number in texts if number)


def _tabulate_held(reading: Reading, rows: int) -> Section:
    """Return the hosts that cannot be drained, with the machines that may not move."""
    held = list_held_hosts(reading)
    frame = pd.DataFrame([(host, ", ".join(names)) for host, names in held], columns=["host", "may not move"])
    return Section(title="Hosts that cannot be drained", frame=frame.head(rows))


def _try_without(problem: Consolidation, decided: Decided, options: Options) -> pd.DataFrame:
    """Return price and score of the design with each limit relaxed."""
    trials: list[tuple[str, dict[str, Any]]] = [
        ("twice the threads", {"threads": 2.0}),
        ("twice the memory", {"memory": 2.0}),
    ]
    if problem.resources:
        trials.append(("twice the other resources", {"resources": 2.0}))
    if problem.rules is not None and len(problem.rules):
        trials.append(("without rules", {"without_rules": True}))
    if problem.survive is not None and len(problem.survive):
        trials.append(("without losses to survive", {"without_losses": True}))
    is_whole = np.abs(problem.vcpus / problem.client - np.rint(problem.vcpus / problem.client)) < 1e-6
    if any(split == "never" for split in problem.split) and is_whole.all():
        trials.append(("all machines split evenly", {"split": "even"}))
    rows = []
    for name, changes in trials:
        decision = decided.design.run(
            adjust(problem, **changes), options=options, parameters=decided.parameters
        )
        if decision.plan is not None:
            metrics = measure(adjust(problem, **changes), decision.plan, None)
            rows.append((name, metrics["price_per_h"], metrics["hosts"], metrics["score"]))
    return pd.DataFrame(rows, columns=["change", "price", "hosts", "lowest_throughput"])


def _say_trials(trials: pd.DataFrame, price: float, score: float | None) -> list[str]:
    """Return the change that saves most, and those that save nothing."""
    if not len(trials):
        return []
    saving = 1 - trials["price"].to_numpy(float) / max(price, 1e-300)
    if (saving <= SAME).all() and score is not None:
        gain = trials["lowest_throughput"].to_numpy(float) / max(score, 1e-300) - 1
        best = int(np.nanargmax(gain))
        if gain[best] > SAME:
            change = _capital(str(trials["change"].iloc[best]))
            return [f"{change} raises the lowest throughput by {percent(gain[best])}."]
        return ["No change of a single limit lowers the price or raises the lowest throughput."]
    best = int(saving.argmax())
    words = [
        f"{_capital(str(trials['change'].iloc[best]))} saves {percent(float(saving[best]))} of the price."
    ]
    useless = [str(name) for name, share in zip(trials["change"], saving, strict=True) if share <= SAME]
    if useless:
        words.append(f"{_capital(', '.join(useless))} {'saves' if len(useless) == 1 else 'save'} nothing.")
    return words


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
