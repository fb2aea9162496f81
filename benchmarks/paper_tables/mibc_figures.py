"""From fits to figures: means and the paired tests of `paired_test`, two-sided, p < 0.01.

On one problem the test is over its splits, over all problems the mean of each is one pair; there
the three peers share Holm's correction.
"""

from collections.abc import Iterable

import numpy as np

from benchmarks.paired_test import Paired, paired, paired_peers
from benchmarks.paper_tables.fits import Fit
from benchmarks.paper_tables.mibc_methods import COST, SQUARED, UNDER
from benchmarks.paper_tables.protocol import mean_and_error

P = 0.01
# Training and test rows of a split, 50 : 20 : 30.
SPLIT = (0.5, 0.3)
# What one would do who does not know whether classes are curved: a plane, or kernel features.
EITHER, OF = "MIBC either", ("MIBC ridge", "MIBC features")
# Fits of one problem: method -> split -> fit.
ByMethod = dict[str, dict[int, Fit]]


def by_problem(fits: Iterable[Fit]) -> dict[str, ByMethod]:
    """Problem -> method -> split -> fit, in the order of the fits.

    Where both are there, `EITHER` is added: MIBC on the features or on the columns themselves,
    whichever has the better AUC on the validation part; the columns where they are level.
    """
    grouped: dict[str, ByMethod] = {}
    for fit in fits:
        methods = grouped.setdefault(fit["problem"], {})
        methods.setdefault(fit["method"], {})[fit["split"]] = fit
    return {problem: _with_either(methods) for problem, methods in grouped.items()}


def _with_either(methods: ByMethod) -> ByMethod:
    plane, curved = (methods.get(name, {}) for name in OF)
    either = {
        split: max(plane[split], curved[split], key=lambda fit: fit["validation"])
        for split in plane.keys() & curved.keys()
    }
    if not either:
        return methods
    mine = {name: fits for name, fits in methods.items() if name.startswith("MIBC")}
    return {**mine, EITHER: dict(sorted(either.items())), **methods}


def methods_of(found: dict[str, ByMethod]) -> list[str]:
    """The methods that were run, in the order of the fits."""
    return list(dict.fromkeys(name for methods in found.values() for name in methods))


def ours(found: dict[str, ByMethod]) -> list[str]:
    """The forms of MIBC that were run, and `EITHER` of two."""
    return [name for name in methods_of(found) if name.startswith("MIBC")]


def mean(fits: dict[int, Fit]) -> tuple[float, float | None]:
    """AUC in percent: mean and standard error over the splits."""
    return mean_and_error([100.0 * fit["auc"] for fit in fits.values()])


def differences(one: dict[int, Fit], other: dict[int, Fit]) -> list[float]:
    """One minus the other in percent, on the splits that both have."""
    shared = sorted(one.keys() & other.keys())
    return [100.0 * (one[split]["auc"] - other[split]["auc"]) for split in shared]


def against(methods: ByMethod, name: str, other: str) -> Paired | None:
    """A method beside another on one problem; None where one of them was not run."""
    if name not in methods or other not in methods:
        return None
    return paired(differences(methods[name], methods[other]), *SPLIT)


def overall(found: dict[str, ByMethod], name: str) -> dict[str, Paired]:
    """A form of MIBC minus each peer over all problems that have both, each by its mean."""
    return paired_peers({
        other: [
            float(np.mean(differences(methods[name], methods[other])))
            for methods in found.values()
            if name in methods and other in methods
        ]
        for other in (COST, SQUARED, UNDER)
    })  # fmt: skip


def is_best(methods: ByMethod, name: str) -> bool:
    """The paper's dagger: significantly above cost-sensitive and undersampling."""
    tests = [against(methods, name, other) for other in (COST, UNDER)]
    return all(test is not None and test.verdict(P) == "above" for test in tests)


def verdicts(found: dict[str, ByMethod]) -> list[str]:
    """Each form of MIBC against each peer, by problem and over all, in words."""
    lines = []
    for name in ours(found):
        for other in (COST, SQUARED):
            lines += _significant(found, name, other)
        lines += [
            f"{name} minus {other}, mean of {test.n} problems: {test.words(decimals=2)}"
            for other, test in overall(found, name).items()
        ]
    return lines


def _significant(found: dict[str, ByMethod], name: str, other: str) -> list[str]:
    """Where a form is significantly below another method or above it, by both tests."""
    tests = {p: against(methods, name, other) for p, methods in found.items()}
    known = {p: test for p, test in tests.items() if test is not None and test.n > 1}
    below = [p for p, test in known.items() if test.verdict(P) == "below"]
    above = sum(test.verdict(P) == "above" for test in known.values())
    named = f" ({', '.join(below)})" if below else ""
    line = f"{name} against {other}: below on {len(below)} of {len(known)}{named}, above on {above}"
    return [line] if known else []
