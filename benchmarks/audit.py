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

- counted: the upper limit of the number, from the scores of both models.
- evaluated: the same share of the rare test rows loses its label at random; average precision as
  `rareclass evaluate --missed-cases SHARE` corrects it, by the model of the first deal of folds.
- simulated: scores of known shapes, of which labels are lost at random. A part of the majority may
  score just like the class ("alike"), which no labels tell from cases that were missed.

Members are histogram boosting and logistic regression, with time for both. The lists were designed
on `CHOOSING`; the other tables confirm them. cleanlab is needed for its two lists only
(`pip install cleanlab`).
"""

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks import record
from benchmarks.hunt_hits import as_usual, stored_draws
from benchmarks.markdown import table
from benchmarks.pages.page import mean_of_each
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.tabular import sets

CHOOSING = ("vowel0", "spambase", "satellite", "euthyroid", "unsw", "abalone7", "oil")
CONFIRMING = (
    "mammograph", "shuttle", "cod_rna", "kdd", "bank_marketing", "give_me_some_credit",
    "fraud_stream", "wine4", "scene", "contra2",
)  # fmt: skip
SHARES, KINDS = (0.05, 0.1, 0.2, 0.4), ("random", "border", "both")
BOTH = KINDS[2]
# Kinds of errors that planted lost labels, and wrong rare ones.
_KINDS_OF = {"": KINDS, "wrong_": (BOTH,)}
MEMBERS = ("histogram boosting", "logistic regression")
AUDIT, PLAIN = "audit", "plain out-of-fold scores"
SAME, DEFAULTS = "cleanlab, same probabilities", "cleanlab, defaults"
_MAJORITY, _RARE, _TEST_MAJORITY, _TEST_RARE, _SEED = 700, 80, 1_400, 160, 20261126

# Scores of n rows of the class and m rows of the other class.
SHAPES: dict[str, Callable[..., Any]] = {
    "apart": lambda rng, n, m: (rng.normal(9, 1, n), rng.normal(0, 1, m)),
    "equal variances": lambda rng, n, m: (rng.normal(2.5, 1, n), rng.normal(0, 1, m)),
    "narrow class": lambda rng, n, m: (rng.normal(2.5, 0.5, n), rng.normal(0, 1, m)),
    "wide class": lambda rng, n, m: (rng.normal(2.5, 2, n), rng.normal(0, 1, m)),
    "skewed": lambda rng, n, m: (rng.lognormal(1, 0.7, n), rng.lognormal(0, 0.7, m)),
    "skewed to the left": lambda rng, n, m: (-rng.gamma(1, 1, n), -rng.gamma(6, 1, m)),
    "heavy tails": lambda rng, n, m: (3 + rng.standard_t(2, n), rng.standard_t(2, m)),
    "two values": lambda rng, n, m: (1.0 * (rng.random(n) < 0.8), 1.0 * (rng.random(m) < 0.02)),
    **{
        f"{100 * part:g} % alike": lambda rng, n, m, part=part: (
            rng.normal(4, 0.5, n),
            rng.normal(np.where(np.arange(m) < part * m, 4, 0), 0.5),
        )
        for part in (0.005, 0.015, 0.03)
    },
}
COUNTS = [(n, m) for m in (2_000, 50_000) for n in (50, 300, 2_000)]  # of both classes
_SHOWN = COUNTS[0], COUNTS[1], COUNTS[-1]
SIMULATED = list(product(SHAPES, COUNTS, (0.0, *SHARES)))


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
    from rareclass.audit import score_out_of_fold

    settings = {"members": list(MEMBERS), "n_jobs": 1, "verbose": False}
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
    first = held_out_scores(scores.models[0], len(recorded))
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


def simulated_limits(
    shape: str,
    counts: tuple[int, int],
    share: float,
    n_draws: int,
    thinned: float = 1.0,
    of_rare: bool = False,
) -> np.ndarray:
    """Return limits and true numbers of draws; each label is lost with a probability of `share`.

    `thinned` is the part of the rows of the other label that is there. With `of_rare` as many
    labels of the majority are lost.
    """
    from rareclass.audit import limit_wrong_labels

    found = []
    for seed in range(n_draws):
        rng = np.random.default_rng([_SEED, seed, *counts, round(100 * share)])
        own, other = SHAPES[shape](rng, *counts)
        own, other = (-other, -own) if of_rare else (own, other)
        is_lost = rng.random(len(own)) < share * counts[0] / len(own)
        rows = np.append(other, own[is_lost])
        rows = rows[rng.random(len(rows)) < thinned]
        weight = np.full(len(rows), 1.0 / thinned)
        limit = limit_wrong_labels(own[~is_lost], rows, other_weight=weight)
        found.append((limit.most, is_lost.sum()))
    return np.array(found).T


def simulate(n_draws: int = 100) -> list[dict[str, Any]]:
    """Return for each cell how often the limit holds, and its median beside the labelled rows."""
    rows = []
    for shape, (n, m), share in SIMULATED:
        most, lost = simulated_limits(shape, (n, m), share, n_draws)
        row = {"shape": shape, "n": n, "m": m, "share": share}
        held, ratio = float(np.mean(lost <= most)), float(np.median(most / (n - lost)))
        rows.append({**row, "held": held, "ratio": ratio})
    return rows


def simulated_lines(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Tabulate coverage, and limits where none or a fifth of the labels is lost, by shape."""
    lines = []
    for shape in SHAPES:
        own = [row for row in rows if row["shape"] == shape]
        held = [100 * row["held"] for row in own]
        ratio_of = {(row["n"], row["m"], row["share"]): row["ratio"] for row in own}
        ratios = [ratio_of[n, m, share] for n, m in _SHOWN for share in (0.0, 0.2)]
        lines.append(
            [shape, f"{fmean(held):.1f}", f"{min(held):.0f}", *(f"{r:.2f}" for r in ratios)]
        )
    return lines


def on_new_rows(model: Any, rows: Draw, share: float, seed: int) -> dict[str, Any]:
    """Return average precision on test rows of which a share of the rare ones lost its label."""
    from rareclass.metrics import average_precision, missed_case_measures

    scores, recorded = model.score_samples(rows.X_test), rows.rare_test.copy()
    recorded[planted(recorded, share, "random", scores, seed)] = False
    found = missed_case_measures(recorded, scores, np.inf, missed_cases=share)
    value, low, high = found.average_precision
    return {
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
    figures = {
        "planted": n_lost,
        "wrong_planted": n_false,
        "rare": int(rows.rare.sum()),
        "found": {name: int(rows.rare[of[0][:n_lost]].sum()) for name, of in listed.items()},
        "wrong_found": {
            name: int((~rows.rare[of[1][:n_false]]).sum()) for name, of in listed.items()
        },
        "most": scores.limit().most,
        "wrong_most": scores.limit(of_rare=True).most,
        "seconds": round(time.process_time() - start, 2),
    }
    return figures, scores


def held_out_scores(model: Any, n_rows: int) -> np.ndarray:
    """Return the score of every row by the model's folds; NaN for rows that none held out."""
    scores = np.full(n_rows, np.nan)
    scores[model.held_out_["row"]] = model.held_out_["score"]
    return scores


def measure_draw(name: str, folder: Path, seed: int) -> list[dict[str, Any]]:
    """Return a cell for the true labels, and one for each share and kind of errors."""
    rows, about = draw(name, folder, seed), {"set": name, "draw": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figures, clean = measure(rows, rows.rare, np.zeros(0, dtype=int))
        cells = [{**about, "share": 0.0, "kind": "none", **figures}]
        for kind in KINDS:
            for share in SHARES:
                lost = planted(rows.rare, share, kind, clean.score, seed)
                recorded = rows.rare.copy()
                recorded[lost] ^= True
                figures, scores = measure(rows, recorded, lost)
                if kind == "random":
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


def coverage(cells: Sequence[dict[str, Any]], kind: str, part: str = "") -> float:
    """Return the share of draws in which at most as many rows as the limit were planted."""
    of_kind = [cell for cell in cells if cell["kind"] == kind]
    return fmean(cell[f"{part}planted"] <= cell[f"{part}most"] for cell in of_kind)


def limit_lines(cells: Sequence[dict[str, Any]], part: str = "") -> list[list[str]]:
    """Tabulate limits and coverage by kind and share."""
    lines = []
    for kind, share in [("none", 0.0), *((kind, share) for kind in KINDS for share in SHARES)]:
        own = [c for c in cells if c["kind"] == kind and c["share"] == share]
        if not own or kind not in ("none", *_KINDS_OF[part]):
            continue
        means = [fmean(c[part + key] for c in own) for key in ("planted", "most")]
        line = [kind, f"{100 * share:.0f}", *(f"{mean:.1f}" for mean in means)]
        lines.append([*line, f"{100 * coverage(own, kind, part):.0f}"])
    return lines


def evaluated_lines(cells: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Tabulate average precision on test rows that lost labels: recorded, corrected and true."""
    lines = []
    for share in SHARES:
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
    for title, names in (("confirm", CONFIRMING), ("the lists were designed on", CHOOSING)):
        own = [name for name in names if name in there]
        if not own:
            continue
        n = n_at_least(cells, own)
        of_set = [cell for cell in cells if cell["set"] in own]
        heads = ["errors", "share, %", "planted", "limit", "within, %"]
        parts += [
            f"Tables that {title}; on {n} of {len(own)} the audit finds at least as many as every "
            "other list:",
            table(header, found_lines(cells, own)),
            "Rare labels that are wrong, found among as many rare rows as were planted (errors in "
            "both directions):",
            table(header, found_lines(cells, own, "wrong_")),
            "Number of missed cases, mean over tables and draws: as planted, and the upper limit "
            "for labels lost at random (95 %); draws in which at most so many were planted, in "
            "percent:",
            table(heads, limit_lines(of_set)),
            "Number of rare labels that are wrong, likewise:",
            table(heads, limit_lines(of_set, "wrong_")),
            "Average precision on test rows that lost labels at random, as recorded and as "
            "`rareclass evaluate --missed-cases SHARE` corrects it, in percent, with the mean "
            "distance from the true one:",
            table(
                ["share, %", "recorded", "corrected", "true", "recorded, off by",
                 "corrected, off by", "true in the interval, %"],
                evaluated_lines(of_set),
            ),
        ]  # fmt: skip
    if result.get("simulated"):
        heads = [f"{n:,} of {m:,}, {lost} lost" for n, m in _SHOWN
                 for lost in ("none", "a fifth")]  # fmt: skip
        parts += [
            "Simulated scores, labels lost at random: draws of all sizes and shares in which the "
            "limit is at least the number lost, in percent, and those of the worst cell; median "
            "limit as a multiple of the rows that kept the label (0.25 are lost of a fifth), by "
            "rows of the class and of the majority:",
            table(["scores", "within, %", "least", *heads], simulated_lines(result["simulated"])),
        ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the draws that the file has not, and print the page."""
    args, path, result = stored_draws("audit", __doc__, 3, [*CONFIRMING, *CHOOSING], argv)
    folder = needed_folder()
    if not find_spec("cleanlab"):
        print("cleanlab is left out: it is not installed (pip install cleanlab).")
    cells, simulated = result.get("cells", []), result.get("simulated")
    if simulated is None:
        simulated = simulate()
        record.write("audit", {"cells": cells, "simulated": simulated}, path)
    for seed in range(args.draws):
        for name in args.only:
            if not any((cell["set"], cell["draw"]) == (name, seed) for cell in cells):
                cells += measure_draw(name, folder, seed)
                record.write("audit", {"cells": cells, "simulated": simulated}, path)
                print(f"{name}, draw {seed}: done", file=sys.stderr, flush=True)
    print(page({"cells": cells, "simulated": simulated}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
