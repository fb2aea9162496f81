"""Pages on decisions, estimates and reliability."""

import numpy as np

from benchmarks import honest, interval_coverage
from benchmarks.decisions import constraints, paired
from benchmarks.markdown import table
from benchmarks.pages.page import Finding, Result, chosen, page


def _honest_body(result: Result) -> str:
    """Own estimates less figures of new rows, by columns and by what gave the estimate."""

    def shown(found: dict[str, tuple[float, float]], name: str) -> str:
        return f"{found[name][0]:+.3f} ± {found[name][1]:.3f}" if name in found else ""

    rows = [
        [line["columns"], line["what"], str(line["n"])]
        + [shown(line["means"], name) for name in honest.MEASURES]
        for line in result["summary"]
        if line["n"] > 1
    ]
    named = ", ".join(dict.fromkeys(cell["table"] for cell in result["cells"]))
    return (
        "Own estimate less the figure of new rows: mean over tables and seeds, and its standard "
        "error. The mean probability is less the share of rare rows in both. Fold by fold, the "
        f"rows that a fold holds out are the new rows of a refit. Tables: {named}.\n\n"
        + table(["columns of the tables", "estimate of", "splits", *honest.MEASURES], rows)
    )


@page(
    "honest",
    "Own estimates beside new rows",
    "decisions",
    "honest",
    "Estimates that a training prints of itself are compared with figures of rows that it never "
    "saw, on tables of codes, words and numbers.",
    _honest_body,
    is_headline=True,
)
def _honest(result: Result) -> Finding:
    lines = {line["columns"]: line for line in chosen(result["summary"], what="RareClassifier")}

    def shown(kind: str) -> str:
        mean, error = lines[kind]["means"]["average precision"]
        return f"{mean:+.3f} ± {error:.3f} on {lines[kind]['n'] // result['seeds']}"

    return Finding(
        "Own estimate of average precision less that of new rows, mean and standard error over "
        f"tables with {result['seeds']} splits each",
        f"RareClassifier of {len(honest.MEMBERS)} members {shown('codes')} made tables of codes, "
        f"{shown('all')} tables in all",
    )


@page(
    "constraints",
    "Thresholds that keep a constraint",
    "decisions",
    "decisions.constraints",
    "Thresholds that must keep a precision, a recall or a budget of alerts are chosen on held-out "
    "rows and judged on the known distribution of fresh rows.",
    constraints.render,
    is_headline=True,
)
def _constraints(result: Result) -> Finding:
    cells = result["cells"]

    def shown(method: str) -> str:
        shares = [100.0 * cell[method]["broken"] for cell in cells]
        return f"{np.mean(shares):.1f} % in the mean, {max(shares):.1f} % at most"

    def gains(method: str) -> np.ndarray:
        of = [cell[method] for cell in cells]
        return np.array([c["promised"] and c["promised"] * c["gain_of_oracle"] for c in of])

    ours, mapie = gains("rareclass"), gains(constraints.SEQUENCE)
    n_ahead = np.count_nonzero(mapie > ours + 0.005)
    return Finding(
        f"Draws in which fresh rows break the promised constraint, {len(cells)} cells",
        f"ThresholdRule (confidence {result['confidence']:g}) {shown('rareclass')}; its mean gain, "
        f"0 without a promise, is {ours.mean():.2f} of the best possible threshold's",
        f"the threshold that just keeps it on the held-out rows {shown('plain')}; scikit-learn's "
        f"TunedThresholdClassifierCV {shown('scikit-learn')}; MAPIE's risk control, a fixed "
        f"sequence, {shown(constraints.SEQUENCE)}, mean gain {mapie.mean():.2f}, above "
        f"ThresholdRule's by more than 0.005 in {n_ahead} cells (gains not tested; peers on every "
        "5th, 10th or 50th draw)",
    )


@page(
    "decisions_paired",
    "Paired tests of two rankings",
    "decisions",
    "decisions.paired",
    "Intervals and tests of the difference between two rankings of the same rows are compared on "
    "simulated scores with known differences.",
    paired.render,
    is_headline=True,
)
def _paired(result: Result) -> Finding:
    def covered(name: str) -> str:
        shares = [100.0 * row[name]["holds"] for row in result["rows"]]
        return f"{np.mean(shares):.1f} % (at least {min(shares):.1f} %)"

    return Finding(
        "True differences that the 95 % interval contains, 5 to 100 rare rows",
        f"paired_difference {covered('rareclass')}",
        f"Student's interval {covered('Student')}",
    )


@page(
    "interval_coverage",
    "Confidence intervals with few rare rows",
    "decisions",
    "interval_coverage",
    "Intervals of AUC, average precision and precision at k are compared with usual formulas and "
    "the bootstrap on simulated scores with known values.",
    lambda result: (
        "Coverage in % is the mean over the distributions of scores, in brackets the lowest and "
        "the highest; w is the mean width.\n\n" + interval_coverage.table(result["rows"])
    ),
    is_headline=True,
)
def _coverage(result: Result) -> Finding:
    rows = [row for row in result["rows"] if row["rare_rows"] <= 20]
    shares = {
        method: [
            100.0 * row[m][method]["coverage"] for row in rows for m in interval_coverage.MEASURES
        ]
        for method in interval_coverage.METHODS
    }
    shown = {name: f"{np.mean(own):.1f} % ({min(own):.1f} %)" for name, own in shares.items()}
    return Finding(
        "True values that the 95 % interval contains, with 5 to 20 rare rows: mean and, in "
        f"brackets, lowest of {len(shares['rareclass'])} cells",
        f"rareclass {shown['rareclass']}",
        f"usual formulas {shown['formula']}, bootstrap {shown['bootstrap']}",
    )


def _fault_counts(result: Result) -> dict[tuple[str, str], np.ndarray]:
    """Faults, noticed at first, noticed now, harmless and gaps by seed and package."""
    found = {}
    for seed, of_seed in result["seeds"].items():
        for room, each in of_seed["rooms"].items():
            found[seed, room] = np.array([each["faults"], each["first"], each["now"], 0, 0])
        for fault in of_seed["survivors"].values():
            found[seed, fault["path"].split("/")[2]][4 if fault["kind"] == "gap" else 3] += 1
    return found


def _mutants_body(result: Result) -> str:
    """Faults and how many of them the tests notice, by seed and package."""
    counts = _fault_counts(result)
    for seed in result["seeds"]:
        counts[seed, "all"] = sum(n for (of, room), n in counts.items() if of == seed)
    head = ["seed", "package", "faults", "noticed at first", "noticed now", "harmless", "gaps"]
    rows = [[*key, *map(str, numbers)] for key, numbers in counts.items()]
    return (
        "Noticed at first: by the tests as they were when the fault was drawn; of seed 0 only the "
        "later state is known. Noticed now: with tests written since, or of other folders. "
        "`tools/mutants/explained.toml` says of each harmless fault why it is: no answer differs, "
        "only time or memory does, another number does as well, or the code was deleted.\n\n"
        + table(head, rows)
    )


@page(
    "mutants",
    "Faults that the tests notice",
    "reliability",
    "make mutants COUNT=20",
    "Small faults are put into the package one at a time, and tests of the changed folder run.",
    _mutants_body,
    is_headline=True,
)
def _mutants(result: Result) -> Finding:
    counts = _fault_counts(result)
    now, gaps = sum(counts.values())[[2, 4]]
    new = sum(numbers for (seed, _), numbers in counts.items() if seed != "0")
    harmful = new[0] - new[3]
    return Finding(
        "Faults put into the package one at a time that its tests notice, harmless ones left out",
        f"{new[1]} of {harmful} drawn with new seeds ({new[1] / harmful:.0%})",
        f"{now} of {now + gaps} after tests were added for those that were missed",
    )
