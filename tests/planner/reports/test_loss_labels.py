"""Labels of losses: the largest first, sums where they would overlap, and the share that they cover."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.contract.drawing import NetworkMap
from planner.formatting import amount_or_number, units_from
from planner.reports.loss_labels import Label, Loss, coverage_text, overlap, place_labels

EDGES = (0.0, 1000.0)


def width_of(text: str) -> float:
    return 7.0 * len(text)


def losses_at(count: int, *, seed: int, size: float = 900.0) -> list[Loss]:
    random = np.random.default_rng(seed)
    x, y = random.uniform(50, size, (2, count))
    amounts = random.pareto(1.0, count) * 100
    words = random.choice(["lost", "not served", "lost or not served"], count).tolist()
    return [
        Loss(x=float(a), y=float(b), radius=4.0, amount=float(amount), words=verb)
        for a, b, amount, verb in zip(x, y, amounts, words, strict=True)
    ]


def place(losses: list[Loss], unit: str = "Mbit/s", **more: Any) -> list[Label]:
    return place_labels(losses, unit, width_of=width_of, edges=EDGES, **more)


def network(amounts: list[float], **more: Any) -> NetworkMap:
    nodes = pd.DataFrame({"node": [str(i) for i in range(len(amounts))], "lost": amounts})
    links = pd.DataFrame({"tail": ["0"], "head": ["1"], "value": [1.0], "lost": [5.0]})
    inputs: dict[str, Any] = {"title": "", "nodes": nodes, "links": links, "value": "", "lost_unit": "Mbit/s"}
    return NetworkMap(**inputs | more)


def test_each_verb_is_said_once() -> None:
    drawing = network([10.0, 6.0, 4.0])
    verbs = ["not served or degraded", "not served", "degraded"]
    drawing = replace(drawing, nodes=drawing.nodes.assign(lost_as=verbs), lost_twice=True)
    assert coverage_text([], drawing).endswith("that is not served or degraded")


@pytest.mark.parametrize("seed", range(20))
def test_labels_do_not_overlap_and_the_largest_loss_has_one(seed: int) -> None:
    losses = losses_at(60, seed=seed)
    labels = place(losses)
    assert not any(overlap(a.box, b.box) for i, a in enumerate(labels) for b in labels[:i])
    largest = max(losses, key=lambda loss: loss.amount)
    assert any(largest in label.losses for label in labels)
    labelled = [loss for label in labels for loss in label.losses]
    assert len(labelled) == len(set(labelled)), "no loss is in two labels"
    assert [label.amount for label in labels] == sorted((label.amount for label in labels), reverse=True)


def test_losses_that_are_apart_have_labels_of_their_own_in_the_order_of_amounts() -> None:
    losses = [
        Loss(x=100.0 + 200 * i, y=300.0, radius=4.0, amount=10.0 * (i + 1), words="lost") for i in range(4)
    ]
    assert [label.text for label in place(losses)] == ["40 Mbit/s", "30 Mbit/s", "20 Mbit/s"], "enough"


def test_losses_at_one_place_have_one_label_with_their_sum_and_number() -> None:
    losses = [Loss(x=300.0, y=300.0 + i, radius=4.0, amount=400.0, words="lost") for i in range(3)]
    assert [label.text for label in place(losses)] == ["1.2 Gbit/s (3)"]
    mixed = [*losses, Loss(x=300.0, y=300.0, radius=4.0, amount=1.0, words="not served")]
    assert [label.text for label in place(mixed)] == ["1.201 Gbit/s lost or not served (4)"]


def test_the_share_counts_what_is_not_drawn() -> None:
    drawing = network([60.0, 35.0])
    labels = place([Loss(x=1.0, y=1.0, radius=1.0, amount=60.0, words="lost")])
    assert coverage_text(labels, drawing) == "labels cover 60% of the 100 Mbit/s that is lost"
    assert coverage_text([], network([0.0, 0.0], lost_twice=True)) == ""
    twice = network([60.0, 35.0], lost_twice=True, lost_unit="clients")
    assert coverage_text(labels, twice) == "labels cover 63% of the 95 clients that are lost"
    one = network([1.0, 0.0], lost_twice=True, lost_unit="clients")
    whole = place([Loss(x=1.0, y=1.0, radius=1.0, amount=1.0, words="lost")])
    assert coverage_text(whole, one) == "labels cover the 1 client that is lost"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@pytest.mark.parametrize("seed", range(5))
def test_the_dashboard_places_the_same_labels(seed: int) -> None:
    losses = losses_at(50, seed=seed)
    folder = files("planner_dashboard.pictures")
    code = (folder / "labels.js").read_text(encoding="utf-8")
    code += "function overlaps(a, b) { return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]; }\n"
    code += "function clamp(v, a, b) { return a > b ? (a + b) / 2 : Math.max(a, Math.min(v, b)); }\n"
    state = (folder / "state.js").read_text(encoding="utf-8")
    code += state[state.index("function figure(") :]
    given = [asdict(loss) | {"text": amount_or_number(loss.amount, "Mbit/s")} for loss in losses]
    options = {"units": units_from("Mbit/s"), "taken": [], "left": EDGES[0], "right": EDGES[1]}
    code += f"const options = {{ ...{json.dumps(options)}, widthOf: (text) => 7 * text.length }};\n"
    code += f"const labels = placeLabels({json.dumps(given)}, options);\n"
    code += "console.log(JSON.stringify(labels.map(({ text, box, amount }) => [text, box, amount])));"
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True, timeout=60)
    for (text, box, amount), label in zip(json.loads(run.stdout), place(losses), strict=True):
        assert text == label.text
        assert box == pytest.approx(label.box)
        assert amount == pytest.approx(label.amount)
