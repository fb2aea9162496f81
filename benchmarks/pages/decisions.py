"""Pages on decisions, estimates and reliability."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import honest, interval_coverage
from benchmarks.decisions import (
    calibration,
    constraints,
    folds,
    paired,
)
from benchmarks.markdown import table
from benchmarks.pages.page import Finding, Page, Result, means_by

EXPLAINED = Path(__file__).parents[2] / "tools" / "mutants" / "explained.toml"


def _part(result: Result, part: str) -> dict[str, Any]:
    """Return what one part of `benchmarks.run decisions` measured."""
    return next(run["result"] for run in result["runs"] if run["key"] == part)


def calibration_finding(result: Result) -> Finding:
    """Return the mean log loss over sets and classifiers."""
    means = means_by(_part(result, "calibration")["cells"], "calibrator", "log_loss")
    return Finding(
        "Mean log loss of calibrated probabilities, 14 sets and four classifiers",
        f"CalibratedRanker {means['rareclass']:.3f}",
        f"scikit-learn's CalibratedClassifierCV, sigmoid {means['scikit-learn, sigmoid']:.3f}, "
        f"isotonic {means['scikit-learn, isotonic']:.3f}, uncalibrated {means['as it comes']:.3f}",
    )


def constraints_finding(result: Result) -> Finding:
    """Return how often a promised constraint is broken on fresh rows."""
    cells = result["cells"]

    def shown(method: str) -> str:
        broken = [100.0 * cell[method]["broken"] for cell in cells]
        return f"{np.mean(broken):.1f} % in the mean, {max(broken):.1f} % at most"

    return Finding(
        f"Draws in which fresh rows break the promised constraint, {len(cells)} cells",
        f"ThresholdRule (confidence {result['confidence']:g}) {shown('rareclass')}",
        f"the best threshold on the held-out rows {shown('plain')}; scikit-learn's "
        f"TunedThresholdClassifierCV {shown('scikit-learn')}",
    )


def folds_finding(result: Result) -> Finding:
    """Return the size of the tests where no learner is better."""
    rows = [row for row in result["folds"] if row["null"]]

    def size(name: str) -> str:
        shares = [100.0 * row["apart"][name] for row in rows]
        return f"{np.mean(shares):.1f} % (at most {max(shares):.1f} %)"

    return Finding(
        "Equally good learners called different at 5 %, by tests on cross-validation folds",
        f"compare_methods {size('rareclass')}",
        f"pooled scores {size('pooled')}, corrected t {size('corrected t')}",
    )


def paired_finding(result: Result) -> Finding:
    """Return coverage of the intervals of a difference."""
    rows = result["rows"]

    def covered(name: str) -> str:
        shares = [100.0 * row[name]["holds"] for row in rows]
        return f"{np.mean(shares):.1f} % (at least {min(shares):.1f} %)"

    return Finding(
        "True differences that the 95 % interval contains, 5 to 100 rare rows",
        f"paired_difference {covered('rareclass')}",
        f"percentile bootstrap {covered('percentile')}",
    )


def coverage(result: Result) -> str:
    """Coverage by measure and number of rare rows."""
    return (
        "Coverage in % is the mean over the distributions of scores, in brackets the lowest and "
        "the highest; w is the mean width.\n\n" + interval_coverage.table(result["rows"])
    )


def coverage_finding(result: Result) -> Finding:
    """Return mean coverage with at most 20 rare rows."""
    rows = [row for row in result["rows"] if row["rare_rows"] <= 20]
    shares = {
        method: 100.0
        * np.mean([row[m][method]["coverage"] for row in rows for m in interval_coverage.MEASURES])
        for method in interval_coverage.METHODS
    }
    return Finding(
        "True values that the 95 % interval contains, with 5 to 20 rare rows",
        f"rareclass {shares['rareclass']:.1f} %",
        f"usual formulas {shares['formula']:.1f} %, bootstrap {shares['bootstrap']:.1f} %",
    )


def honest_table(result: Result) -> str:
    """Own estimates less figures of new rows, by columns and by what gave the estimate."""
    shown = [line for line in result["summary"] if line["n"] > 1]
    header = ["columns of the tables", "estimate of", "splits", *honest.MEASURES]
    rows = [
        [line["columns"], line["what"], str(line["n"])]
        + [
            f"{line['means'][name][0]:+.3f} ± {line['means'][name][1]:.3f}"
            if name in line["means"]
            else ""
            for name in honest.MEASURES
        ]
        for line in shown
    ]
    tables_text = ", ".join(dict.fromkeys(cell["table"] for cell in result["cells"]))
    return (
        "Own estimate less the figure of new rows: mean over tables and seeds, and its standard "
        "error. The mean probability is less the share of rare rows in both. Fold by fold, the "
        f"rows that a fold holds out are the new rows of a refit. Tables: {tables_text}.\n\n"
        + table(header, rows)
    )


def honest_finding(result: Result) -> Finding:
    """Return the mean difference in average precision, of tables of codes and of all."""
    means = {
        line["columns"]: line["means"]["average precision"]
        for line in result["summary"]
        if line["what"] == "RareClassifier"
    }
    codes, every = (f"{means[kind][0]:+.3f} ± {means[kind][1]:.3f}" for kind in ("codes", "all"))
    return Finding(
        "Own estimate of average precision less that of new rows, mean and standard error",
        f"RareClassifier {codes} on made tables of codes, {every} on all tables",
    )


def _verdicts(result: Result) -> list[tuple[str, str, bool, bool, str]]:
    """Seed, package, whether noticed at first and now, and why not, of every fault."""
    named = tomllib.loads(EXPLAINED.read_text())["survivor"]
    kinds = {each["fault"]: each["kind"] for each in named}
    return [
        (
            str(of_seed["seed"]),
            verdict["path"].removeprefix("src/rareclass/").partition("/")[0],
            bool(verdict["caught"]) and len(verdict["tried"]) == 1,
            bool(verdict["caught"]),
            "" if verdict["caught"] else kinds.get(name, "gap"),
        )
        for of_seed in result.values()
        for name, verdict in of_seed["verdicts"].items()
    ]


def mutants(result: Result) -> str:
    """Faults and how many of them the tests notice, by seed and package."""
    every, rows = _verdicts(result), []
    places = sorted({(each[0], each[1]) for each in every}, key=lambda each: (int(each[0]), each))
    for seed, room in [*places, *((seed, "all") for seed in dict.fromkeys(p[0] for p in places))]:
        found = [each for each in every if each[0] == seed and room in (each[1], "all")]
        numbers = (
            len(found),
            sum(each[2] for each in found),
            sum(each[3] for each in found),
            sum(each[4] not in ("", "gap") for each in found),
            sum(each[4] == "gap" for each in found),
        )
        rows.append([seed, room, *map(str, numbers)])
    head = ["seed", "package", "faults", "noticed at first", "noticed now", "harmless", "gaps"]
    return (
        "Noticed at first: by the tests as they were when the fault was drawn; of seed 0 only the "
        "later state is known. Noticed now: with tests written since, or of other folders. "
        "`tools/mutants/explained.toml` says of each harmless fault why it is: no answer differs, "
        "only time or memory does, another number does as well, or the code was deleted.\n\n"
        + table(head, rows)
    )


def mutants_finding(result: Result) -> Finding:
    """Return how many faults the tests notice, and how many before tests were written."""
    every = _verdicts(result)
    harmful = [each for each in every if each[4] in ("", "gap")]
    new = [each for each in harmful if each[0] != "0"]
    first = sum(each[2] for each in new)
    return Finding(
        "Faults put into the package one at a time that its tests notice, harmless ones left out",
        f"{sum(each[3] for each in harmful)} of {len(harmful)}",
        f"of {len(new)} with new seeds {first} ({first / len(new):.0%}) before tests were added",
    )


PAGES = {
    "honest": Page(
        "Own estimates beside new rows",
        "decisions",
        "honest",
        "Estimates that a training prints of itself are compared with figures of rows that it "
        "never saw, on tables of codes, words and numbers.",
        honest_finding,
        honest_table,
        is_headline=True,
    ),
    "calibration": Page(
        "Probabilities",
        "decisions",
        "run decisions --what calibration",
        "CalibratedRanker is compared with scikit-learn's CalibratedClassifierCV on 14 real sets "
        "and four classifiers, on the same folds.",
        calibration_finding,
        lambda result: calibration.render(_part(result, "calibration")),
        sources=("decisions",),
        is_headline=True,
    ),
    "constraints": Page(
        "Thresholds that keep a constraint",
        "decisions",
        "decisions.constraints",
        "Thresholds that must keep a precision, a recall or a budget of alerts are chosen on "
        "held-out rows and judged on the known distribution of fresh rows.",
        constraints_finding,
        constraints.render,
        is_headline=True,
    ),
    "decisions_folds": Page(
        "Tests on cross-validation folds",
        "decisions",
        "decisions.folds --json benchmarks/results/decisions_folds.json",
        "Tests of the difference between two learners on cross-validation folds are compared on "
        "simulated learners, equally good and not.",
        folds_finding,
        folds.render,
        is_headline=True,
    ),
    "decisions_paired": Page(
        "Paired tests of two rankings",
        "decisions",
        "decisions.paired",
        "Intervals and tests of the difference between two rankings of the same rows are compared "
        "on simulated scores with known differences.",
        paired_finding,
        paired.render,
        is_headline=True,
    ),
    "interval_coverage": Page(
        "Confidence intervals with few rare rows",
        "decisions",
        "interval_coverage",
        "Intervals of AUC, average precision and precision at k are compared with usual formulas "
        "and the bootstrap on simulated scores with known values.",
        coverage_finding,
        coverage,
        is_headline=True,
    ),
    "mutants": Page(
        "Faults that the tests notice",
        "reliability",
        "make mutants COUNT=20",
        "Small faults are put into the package one at a time, and tests of the changed folder run.",
        mutants_finding,
        mutants,
        sources=("mutants", "mutants_11", "mutants_12", "mutants_13", "mutants_14"),
        is_headline=True,
    ),
}
