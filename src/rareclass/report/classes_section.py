"""The section on several rare classes: how good each is, and which are taken for which."""

import numpy as np
from numpy.typing import NDArray

from rareclass.model.decisions import RareDecision
from rareclass.model.evaluate import class_decisions
from rareclass.model.facts import RareClassScores
from rareclass.model.model import Model
from rareclass.report.page import (
    NONE,
    PageTable,
    Section,
    decimal_with_bounds,
    percent_with_bounds,
    whole,
)


def classes_section(
    content: Model,
    scores: NDArray[np.float64],
    classes: RareClassScores,
    weight: NDArray[np.float64] | None,
) -> Section:
    """Section with the measures of each class that has rows, and a table of called classes."""
    decision = content.decision
    assert isinstance(decision, RareDecision)
    y = (classes.which >= 0).astype(np.int16)
    of_classes = decision.estimate(y, scores, weight, classes=classes).classes
    called = {each.name: each for each in class_decisions(content, classes)}
    rules, rows = content.facts.class_rules, []
    for each in of_classes:
        row = [each.name, whole(each.n_rows), decimal_with_bounds(each.average_precision)]
        own = called.get(each.name)
        if own is None:
            rows.append((*row, NONE, NONE, NONE))
            continue
        shares = (percent_with_bounds(own.precision), percent_with_bounds(own.recall))
        rows.append((*row, f"{rules[each.name].threshold:.3g}", *shares))
    head = ("Class", "Rows", "Average precision", "Threshold", "Precision", "Recall")
    note = (
        "Each class against all other rows, with 95 % intervals. The threshold is of the "
        "probability of the class; rareclass threshold --class sets another."
    )
    counts = decision.confusion(y, scores, weight, classes=classes)
    counted = tuple(
        (name, *(whole(count) for count in of_name))
        for name, of_name in zip(counts.is_names, counts.counts, strict=True)
    )
    tables = (
        PageTable("Each rare class", head, tuple(rows), (1,), note),
        PageTable(
            "Classes of rows (lines) and classes that they are called (columns)",
            ("Class", *counts.called_names),
            counted,
            tuple(range(1, len(counts.called_names) + 1)),
            "Rows are called a class by the thresholds above.",
        ),
    )
    lead = f"The model tells {len(content.rare_classes)} rare classes apart."
    return Section("classes", "Which rare class", lead, tables)
