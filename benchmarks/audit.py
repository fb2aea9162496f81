"""Planted label errors: found and counted; cleanlab too: `python -m benchmarks.audit`.

5, 10, 20 and 40 percent of the rare training rows of a table get the label of the majority: drawn
at random, or those that a model of the true labels scores lowest (the border). In a third kind,
both, as many majority rows as rare ones are drawn and get the rare label. Training parts have
at most 700 majority and 80 rare rows, so that many draws are cheap; each draw has other rows.

- found: planted rows among the first n rows listed of the label, n the number planted, by

  - audit: as `rareclass.labels.audit` lists rows, by two models on one scale of all folds;
  - plain out-of-fold scores: those of the first model alone;
  - cleanlab, same probabilities: the issues of `find_label_issues`, given the audit's
    probabilities, then all other rows, each by label quality;
  - cleanlab, defaults: the same of `CleanLearning()`, a logistic regression with five folds, of
    standardised numbers and values of categories one by one.

- counted: the estimated number and its interval, from the scores of both models, and the count of
  confident learning.
- evaluated: the same share of the rare test rows loses its label at random; number and average
  precision as `rareclass evaluate --missed-cases auto` estimates them, by the model of the first
  deal of folds.

Members are histogram boosting and logistic regression, with time for both. The
estimate was designed on `CHOOSING`; the other tables confirm it. cleanlab is needed for its two
lists only (`pip install cleanlab`).
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks import record
from benchmarks.hunt_hits import as_usual
from benchmarks.markdown import table
from benchmarks.pages.page import mean_of_each
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular import sets

CHOOSING = ("vowel0", "spambase", "satellite", "euthyroid", "unsw", "abalone7", "oil")
CONFIRMING = (
    "mammograph", "shuttle", "cod_rna", "kdd", "bank_marketing", "give_me_some_credit",
    "fraud_stream", "wine4", "scene", "contra2",
)  # fmt: skip
SHARES, KINDS = (0.05, 0.1, 0.2, 0.4), ("random", "border", "both")
BOTH = KINDS[2]
# Kinds of errors that planted rare labels, and labels of test rows.
_KINDS_OF = {"": KINDS, "wrong_": (BOTH,), "new_": ("random",)}
MEMBERS = ("histogram boosting", "logistic regression")
AUDIT, PLAIN = "audit", "plain out-of-fold scores"
SAME, DEFAULTS = "cleanlab, same probabilities", "cleanlab, defaults"
_MAJORITY, _RARE, _TEST_MAJORITY, _TEST_RARE, _SEED = 700, 80, 1_400, 160, 20261126
_SECONDS = 600.0  # for every model: no member is left out


class Draw(NamedTuple):
    """Rows of a table to learn from, and others with true labels."""

    X: pl.DataFrame
    rare: np.ndarray
    X_test: pl.DataFrame
    rare_test: np.ndarray


def draw(name: str, folder: Path, seed: int) -> Draw:
    """Draw training and test rows of a table, a third of few rows for testing."""
    rows = sets.load(name, folder)
    rng = np.random.default_rng([_SEED, seed])
    rare, parts = np.asarray(rows.y) == 1, []
    for members, most, most_tested in (
        (np.flatnonzero(rare), _RARE, _TEST_RARE),
        (np.flatnonzero(~rare), _MAJORITY, _TEST_MAJORITY),
    ):
        members = rng.permutation(members)
        n = min(most, len(members) * 2 // 3)
        parts.append((members[:n], members[n : n + most_tested]))
    train, test = (np.sort(np.concatenate(each)) for each in zip(*parts, strict=True))
    return Draw(rows.frame[train], rare[train], rows.frame[test], rare[test])


def planted(rare: np.ndarray, share: float, kind: str, scores: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows with a wrong label: drawn, or the rare ones of the lowest score."""
    cases = np.flatnonzero(rare)
    n, random = max(1, round(share * len(cases))), np.random.default_rng([_SEED, seed, 1])
    if kind == "border":
        return cases[np.argsort(scores[cases], kind="stable")][:n]
    lost = random.permutation(cases)[:n]
    if kind != BOTH:
        return lost
    return np.concatenate([lost, random.permutation(np.flatnonzero(~rare))[:n]])


def score(X: pl.DataFrame, recorded: np.ndarray) -> Any:
    """Return out-of-fold scores as an audit has them."""
    from rareclass.audit.auditing import score_out_of_fold

    settings = {"time_budget": _SECONDS, "members": list(MEMBERS), "n_jobs": 1, "verbose": False}
    return score_out_of_fold(X, recorded.astype(int), pos_label=1, **settings)


def by_cleanlab(recorded: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Return the rows as cleanlab orders them, given out-of-fold probabilities."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    labels, both = recorded.astype(int), np.column_stack([1.0 - probability, probability])
    issue = find_label_issues(labels, both, n_jobs=1)
    return np.lexsort((get_label_quality_scores(labels, both), ~issue))


def by_cleanlab_alone(X: pl.DataFrame, recorded: np.ndarray) -> np.ndarray:
    """Return the rows as cleanlab orders them with its own classifier."""
    from cleanlab.classification import CleanLearning

    learning = CleanLearning(verbose=False, find_label_issues_kwargs={"n_jobs": 1})
    found = learning.find_label_issues(as_usual(X), recorded.astype(int))
    return np.lexsort((found["label_quality"], ~found["is_label_issue"].to_numpy(dtype=bool)))


def listed_by(X: pl.DataFrame, recorded: np.ndarray, scores: Any) -> dict[str, list[np.ndarray]]:
    """Return the majority rows, and the rare rows, as each method lists them."""
    first = _held_out(scores.models[0], len(recorded))
    order = np.argsort(-first, kind="stable")
    order = order[~np.isnan(first[order])]
    both = {AUDIT: [scores.suspects(), scores.suspects(of_rare=True)], PLAIN: [order, order[::-1]]}
    if find_spec("cleanlab"):
        both[SAME] = [by_cleanlab(recorded, scores.probability)] * 2
        both[DEFAULTS] = [by_cleanlab_alone(X, recorded)] * 2
    return {
        name: [each[recorded[each] == of_rare] for of_rare, each in enumerate(pair)]
        for name, pair in both.items()
    }


def on_new_rows(model: Any, rows: Draw, share: float, seed: int) -> dict[str, Any]:
    """Return estimates from test rows of which a share of the rare ones lost its label."""
    from rareclass.labels.wrong_labels import confident_count
    from rareclass.metrics import average_precision, missed_case_measures

    scores, recorded = model.score_samples(rows.X_test), rows.rare_test.copy()
    lost = planted(recorded, share, "random", scores, seed) if share else np.zeros(0, dtype=int)
    recorded[lost] = False
    found, chance = missed_case_measures(recorded, scores, np.inf), model.calibration_(scores)
    value, low, high = found.average_precision
    return {
        "new_planted": len(lost),
        "new_confident": confident_count(chance[recorded], chance[~recorded]),
        "new_estimate": found.missed.number,
        "new_low": found.missed.low,
        "new_high": found.missed.high,
        "new_most": found.missed.most,
        "new_recorded": float(average_precision(recorded, scores)),
        "new_corrected": value,
        "new_ends": [low, high],
        "new_true": float(average_precision(rows.rare_test, scores)),
    }


def measure(rows: Draw, recorded: np.ndarray, lost: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Return the figures of one scenario, and its scores."""
    start = time.process_time()
    scores = score(rows.X, recorded)
    listed = listed_by(rows.X, recorded, scores)
    n_lost, n_false = int(rows.rare[lost].sum()), int((~rows.rare[lost]).sum())
    estimate, wrong = scores.estimate(), scores.estimate(of_rare=True)
    figures = {
        "planted": n_lost,
        "wrong_planted": n_false,
        "rare": int(rows.rare.sum()),
        "found": {name: int(rows.rare[of[0][:n_lost]].sum()) for name, of in listed.items()},
        "wrong_found": {
            name: int((~rows.rare[of[1][:n_false]]).sum()) for name, of in listed.items()
        },
        "estimate": estimate.number,
        "low": estimate.low,
        "high": estimate.high,
        "most": estimate.most,
        "confident": scores.confident(),
        "wrong_estimate": wrong.number,
        "wrong_low": wrong.low,
        "wrong_high": wrong.high,
        "wrong_most": wrong.most,
        "wrong_confident": scores.confident(of_rare=True),
        "seconds": round(time.process_time() - start, 2),
    }
    return figures, scores


def _held_out(model: Any, n_rows: int) -> np.ndarray:
    scores = np.full(n_rows, np.nan)
    scores[model.held_out_["row"]] = model.held_out_["score"]
    return scores


def measure_draw(name: str, folder: Path, seed: int) -> list[dict[str, Any]]:
    """Return a cell for the true labels, and one for each share and kind of errors."""
    rows, about = draw(name, folder, seed), {"set": name, "draw": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figures, clean = measure(rows, rows.rare, np.zeros(0, dtype=int))
        figures |= on_new_rows(clean.models[0], rows, 0.0, seed)
        cells = [{**about, "share": 0.0, "kind": "none", **figures}]
        for kind in KINDS:
            for share in SHARES:
                lost = planted(rows.rare, share, kind, clean.score, seed)
                recorded = rows.rare.copy()
                recorded[lost] ^= True
                figures, scores = measure(rows, recorded, lost)
                if kind in _KINDS_OF["new_"]:
                    figures |= on_new_rows(scores.models[0], rows, share, seed)
                cells.append({**about, "share": share, "kind": kind, **figures})
    return cells


def found_lines(
    cells: Sequence[dict[str, Any]], names: Sequence[str], part: str = ""
) -> list[list[str]]:
    """Tabulate the planted rows found, mean over draws, shares and kinds, a line for each table.

    `part` is "wrong_" for rare labels that are wrong.
    """
    lines = []
    for name in names:
        own = [c for c in cells if c["set"] == name and c[f"{part}planted"]]
        means = mean_of_each(c[f"{part}found"] for c in own)
        line = [name, f"{fmean(c[f'{part}planted'] for c in own):.1f}"]
        lines.append([*line, *(f"{mean:.2f}" for mean in means.values())])
    return lines


def n_at_least(cells: Sequence[dict[str, Any]], names: Sequence[str]) -> int:
    """Count the tables on which the audit finds at least as many as every peer."""
    n_tables = 0
    for name in names:
        own = [c for c in cells if c["set"] == name and c["planted"]]
        totals = {each: sum(c["found"][each] for c in own) for each in own[0]["found"]}
        n_tables += totals[AUDIT] >= max(totals.values())
    return n_tables


def coverage(
    cells: Sequence[dict[str, Any]], kind: str, end: str = "high", part: str = ""
) -> float:
    """Return the share of draws whose number of planted rows lies in the interval."""
    low, planted, high = (part + each for each in ("low", "planted", end))
    return fmean(cell[low] <= cell[planted] <= cell[high] for cell in cells if cell["kind"] == kind)


def interval_lines(cells: Sequence[dict[str, Any]], part: str = "") -> list[list[str]]:
    """Tabulate estimates and coverage by kind and share."""
    lines = []
    for kind, share in [("none", 0.0), *((kind, share) for kind in KINDS for share in SHARES)]:
        own = [c for c in cells if c["kind"] == kind and c["share"] == share]
        if not own or kind not in ("none", *_KINDS_OF[part]):
            continue
        keys = ("planted", "confident", "estimate", "low", "high")
        means = [fmean(c[part + key] for c in own) for key in keys]
        shares = [f"{100 * coverage(own, kind, end, part):.0f}" for end in ("high", "most")]
        certain = 100 * fmean(c[f"{part}low"] > 0.0 for c in own)
        line = [kind, f"{100 * share:.0f}", *(f"{mean:.1f}" for mean in means)]
        lines.append([*line, f"{certain:.0f}", *shares])
    return lines


def evaluated_lines(cells: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Tabulate average precision on test rows that lost labels: recorded, corrected and true."""
    lines = []
    for share in (0.0, *SHARES):
        own = [c for c in cells if c["share"] == share and "new_true" in c]
        if not own:
            continue
        keys = "new_recorded", "new_corrected", "new_true"
        means = [f"{100 * fmean(c[key] for c in own):.1f}" for key in keys]
        errors = [f"{100 * fmean(abs(c[k] - c['new_true']) for c in own):.1f}" for k in keys[:2]]
        held = fmean(c["new_ends"][0] <= c["new_true"] <= c["new_ends"][1] for c in own)
        lines.append([f"{100 * share:.0f}", *means, *errors, f"{100 * held:.0f}"])
    return lines


def page(result: dict[str, Any]) -> str:
    """Return the section of the page of results."""
    cells = result["cells"]
    there = {cell["set"] for cell in cells}
    draws = [sum(c["set"] == name and not c["share"] for c in cells) for name in sorted(there)]
    n_draws = str(min(draws)) if len(set(draws)) == 1 else f"{min(draws)} to {max(draws)}"
    header = ["table", "planted", *next(c["found"] for c in cells if c["planted"])]
    parts = [
        "A part of the rare training rows of each table gets the label of the majority "
        f"(`benchmarks/audit.py` says how); {n_draws} draw(s) of the rows of a "
        "table. Found: planted rows among "
        "as many majority rows as were planted, mean over draws, shares and kinds of errors."
    ]
    for title, names in (("confirm", CONFIRMING), ("the estimate was designed on", CHOOSING)):
        own = [name for name in names if name in there]
        if not own:
            continue
        n = n_at_least(cells, own)
        of_set = [cell for cell in cells if cell["set"] in own]
        heads = ["errors", "share, %", "planted", "confident learning", "estimate", "low", "high",
                 "certain, %", "in the interval, %", "up to most, %"]  # fmt: skip
        parts += [
            f"Tables that {title}; on {n} of {len(own)} the audit finds at least as many as every "
            "other list:",
            table(header, found_lines(cells, own)),
            "Rare labels that are wrong, found among as many rare rows as were planted (errors in "
            "both directions):",
            table(header, found_lines(cells, own, "wrong_")),
            "Number of missed cases, mean over tables and draws: as planted, as confident learning "
            "counts, and as estimated; share of estimates above zero with certainty, and of "
            "intervals that hold the number planted, in percent (up to `high`, and up to `most`):",
            table(heads, interval_lines(of_set)),
            "Number of rare labels that are wrong, likewise:",
            table(heads, interval_lines(of_set, "wrong_")),
            "Missed cases of test rows, as `rareclass evaluate --missed-cases auto` counts them, "
            "and average precision, in percent, with the mean distance from the true one:",
            table(heads, interval_lines(of_set, "new_")),
            table(
                ["share, %", "recorded", "corrected", "true", "recorded, off by",
                 "corrected, off by", "true in the interval, %"],
                evaluated_lines(of_set),
            ),
        ]  # fmt: skip
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the draws that the file has not, and print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="TABLE", choices=[*CHOOSING, *CONFIRMING])
    parser.add_argument("--json", metavar="FILE", help="default: results/audit.json")
    parser.add_argument("--again", action="store_true", help="measure anew what the file has")
    args = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        print("The tables are not there: RARECLASS_DATA names their folder.")
        return 0
    if not find_spec("cleanlab"):
        print("cleanlab is left out: it is not installed (pip install cleanlab).")
    path = Path(args.json) if args.json else record.RESULTS / "audit.json"
    cells = json.loads(path.read_text())["cells"] if path.exists() and not args.again else []
    for seed in range(args.draws):
        for name in args.only or (*CONFIRMING, *CHOOSING):
            if not any((cell["set"], cell["draw"]) == (name, seed) for cell in cells):
                cells += measure_draw(name, folder, seed)
                record.write("audit", {"cells": cells}, path)
                print(f"{name}, draw {seed}: done", file=sys.stderr, flush=True)
    print(page({"cells": cells}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
