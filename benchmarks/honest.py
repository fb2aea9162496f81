"""Own estimates beside the truth: `python -m benchmarks.honest [--seeds N] [--tables NAME ...]`.

A model is trained on one part of a table and says what it is worth on new rows. The other part are
new rows. For each estimator the difference, own estimate less figure of new rows, is given for

- AUC and average precision,
- precision and alert rate at the threshold that the model chose,
- the mean probability, less the share of rare rows: of held-out rows and of new ones.

`RareClassifier` is also asked fold by fold: the held-out scores of a fold beside those of a model
that was trained on the fold's training rows from outside, without the others (`refit`).

Tables of codes are made, as their endless new rows leave no doubt; the real ones are those of the
shared folder with words or codes, and some of numbers. In `nothing` no column knows anything of the
labels: every AUC is .5.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.model_selection import StratifiedKFold

from benchmarks import record
from benchmarks.audit import held_out_scores
from benchmarks.paper_tables.protocol import data_folder
from rareclass import MIBCCV, RankRCCV, RareClassifier, load
from rareclass.audit import score_out_of_fold
from rareclass.compare import compare_methods
from rareclass.metrics import average_precision, roc_auc

MEASURES = ("average precision", "AUC", "precision at threshold", "alert rate", "mean probability")
# Quick members that differ most: all of "auto" would take ten times as long.
MEMBERS = ("histogram boosting", "extra trees", "logistic regression")
N_TRAINING, MOST_NEW, FOLDS = 5_000, 40_000, 5


class Split(NamedTuple):
    """Training rows and new rows of a table."""

    X: pl.DataFrame
    y: np.ndarray
    X_new: pl.DataFrame
    y_new: np.ndarray


class Kind(NamedTuple):
    """A table by name, what its columns are, and how it is split by a seed."""

    name: str
    columns: str  # "codes", "words", "numbers" or "nothing"
    split: Callable[[int], Split]


def nested_codes(seed: int, n_rows: int, share: float, pairs: bool) -> tuple[pl.DataFrame, Any]:
    """Codes that determine each other, as item, group and department do, and one beside them.

    The log-odds are a sum of effects of single codes and, with `pairs`, of pairs of the third code
    and the one beside it.
    """
    rng = np.random.default_rng(seed)
    n_items, n_others = n_rows // 8, n_rows // 20
    item = np.minimum(rng.zipf(1.4, n_rows) - 1, n_items - 1)
    group_of, department_of = rng.integers(0, n_items // 8, n_items), rng.integers(0, 40, n_items)
    group = group_of[item]
    department = department_of[group]
    other = (department * 7 + rng.integers(0, 25, n_rows)) % n_others
    score = 1.5 * rng.normal(size=n_items)[item] + rng.normal(size=n_items)[group]
    score += 0.7 * rng.normal(size=40)[department] + 1.5 * rng.normal(size=n_others)[other]
    if pairs:
        score += 2.0 * rng.normal(size=40 * n_others)[department * n_others + other]
    cut = np.quantile(score + rng.logistic(size=n_rows), 1.0 - share)
    y = score + rng.logistic(size=n_rows) > cut
    names = ("item", "group", "department", "other")
    codes = (item, group, department, other)
    return pl.DataFrame({n: 3 * c + 11 for n, c in zip(names, codes, strict=True)}), y


def words_of_nothing(seed: int, n_rows: int) -> tuple[pl.DataFrame, Any]:
    """Five columns of words, a few of them frequent, and labels that no column knows of."""
    rng = np.random.default_rng(seed)
    words = [rng.zipf(1.3, n_rows) % 1500 for _ in range(5)]
    table = {f"w{k}": [f"v{word}" for word in column] for k, column in enumerate(words)}
    return pl.DataFrame(table), rng.random(n_rows) < 0.06


def normal_numbers(seed: int, n_rows: int, share: float) -> tuple[pl.DataFrame, Any]:
    """Ten numbers, of which the rare rows have three in the middle."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < share
    X = rng.normal(size=(n_rows, 10))
    X[y, :3] *= 0.4
    X[y, 3] += 1.0
    return pl.DataFrame(X, [f"x{k}" for k in range(10)]), y


def made(name: str, columns: str, make: Callable[[int, int], tuple[pl.DataFrame, Any]]) -> Kind:
    """Return a made table, whose new rows are many."""

    def split(seed: int) -> Split:
        X, y = make(seed, N_TRAINING + MOST_NEW)
        return Split(X[:N_TRAINING], y[:N_TRAINING], X[N_TRAINING:], y[N_TRAINING:])

    return Kind(name, columns, split)


def real(name: str, columns: str) -> Kind:
    """Return a table of the shared folder, two thirds of it for training at most."""

    def split(seed: int) -> Split:
        folder = data_folder()
        assert folder is not None
        table = pl.read_parquet(folder / f"{name}.parquet").sample(
            fraction=1.0, shuffle=True, seed=seed
        )
        y = table["target"].to_numpy() == 1
        X = table.drop("target", *(set(table.columns) & _OTHER_LABELS))
        n = min(N_TRAINING, 2 * len(y) // 3)
        return Split(X[:n], y[:n], X[n : n + MOST_NEW], y[n : n + MOST_NEW])

    return Kind(name, columns, split)


_OTHER_LABELS = {"rings", "quality", "attack", "attack_cat", "glass_type", "contraceptive_method"}

KINDS = (
    made("codes", "codes", lambda s, n: nested_codes(s, n, 0.06, False)),
    made("codes, rare", "codes", lambda s, n: nested_codes(s, n, 0.01, False)),
    made("codes in pairs", "codes", lambda s, n: nested_codes(s, n, 0.06, True)),
    made("codes in pairs, rare", "codes", lambda s, n: nested_codes(s, n, 0.02, True)),
    made("nothing", "nothing", words_of_nothing),
    made("numbers", "numbers", lambda s, n: normal_numbers(s, n, 0.05)),
    made("numbers, rare", "numbers", lambda s, n: normal_numbers(s, n, 0.01)),
    real("bank_marketing", "words"),
    real("kddcup99_10pct_train", "words"),
    real("unsw_nb15_backdoor", "words"),
    real("fraud_stream", "words"),
    real("coil2000", "words"),
    real("german", "words"),
    real("give_me_some_credit", "numbers"),
    real("magic04", "numbers"),
    real("satimage", "numbers"),
    real("mammography", "numbers"),
)


def figures(
    y: np.ndarray, scores: np.ndarray, threshold: float, probability: Any, weight: Any = None
) -> list[float]:
    """Return `MEASURES` of rows with labels; a weight is so many copies."""
    called = scores > threshold
    copies = np.ones(len(y)) if weight is None else weight
    return [
        average_precision(y, scores, copies),
        roc_auc(y, scores, copies),
        float(np.average(y[called], weights=copies[called])) if called.any() else float("nan"),
        float(np.average(called, weights=copies)),
        float(np.average(probability - y, weights=copies)),
    ]


Difference = tuple[str, list[float]]


def rare_classifier(split: Split, seed: int) -> Iterator[Difference]:
    """Own estimate less new rows, and fold by fold less a refit from outside."""
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(split.y, split.y))
    settings = {"members": list(MEMBERS), "random_state": seed, "n_jobs": 1, "verbose": False}
    own = RareClassifier(cv=folds, **settings).fit(split.X, split.y)
    inside = held_out_scores(own, len(split.y))
    yield "RareClassifier", _less(_of_held_out(own), _of_new(own, split.X_new, split.y_new))
    differences = []
    for learned, tested in folds[:2]:
        other = RareClassifier(**settings).fit(split.X[learned], split.y[learned])
        y = split.y[tested]
        of_fold = figures(y, inside[tested], own.offset_, own.calibration_(inside[tested]))
        differences.append(_less(of_fold, _of_new(other, split.X[tested], y)))
    yield "RareClassifier, fold by fold", list(np.mean(differences, axis=0))


def audited(split: Split, seed: int) -> Iterator[Difference]:
    """Out-of-fold scores of an audit less new rows, scored by its first model."""
    found = score_out_of_fold(
        split.X, split.y, 2, members=list(MEMBERS), random_state=seed, n_jobs=1, verbose=False
    )
    seen, threshold = ~np.isnan(found.score), found.models[0].offset_
    own = figures(split.y[seen], found.score[seen], threshold, found.probability[seen])
    yield "audit", _less(own, _of_new(found.models[0], split.X_new, split.y_new))


def compared(split: Split, seed: int) -> Iterator[Difference]:
    """Average precision and AUC of `compare`, less those of the method on new rows."""
    method = RareClassifier(members=list(MEMBERS), random_state=seed, n_jobs=1, verbose=False)
    found = compare_methods(
        split.X, split.y, {"own": method}, cv=FOLDS, random_state=seed, isolate=False
    )
    new = method.fit(split.X, split.y).score_samples(split.X_new)
    assert found.comparison is not None
    values = {each.measure: each.standings[0].value for each in found.comparison.measures}
    own = [values["average_precision"], values["roc_auc"]]
    yield "compare", [*_less(own, [average_precision(split.y_new, new), roc_auc(split.y_new, new)])]


def cross_validated(split: Split, seed: int) -> Iterator[Difference]:
    """Probabilities of the CV classes on new rows, of tables of numbers."""
    if not all(kind.is_numeric() for kind in split.X.dtypes):
        return
    mean = split.X.mean().fill_null(0.0).row(0)
    X, X_new = (np.nan_to_num(_filled(each, mean)) for each in (split.X, split.X_new))
    centre, scale = X.mean(axis=0), X.std(axis=0) + 1e-9
    X, X_new = (X - centre) / scale, (X_new - centre) / scale
    for search in (RankRCCV(cv=FOLDS, random_state=seed), MIBCCV(cv=FOLDS, random_state=seed)):
        model = search.fit(X, split.y)
        probability = model.predict_proba(X_new)[:, 1]
        new = roc_auc(split.y_new, model.score_samples(X_new))
        nan = float("nan")
        error = float(split.y.mean() - probability.mean() + split.y_new.mean() - split.y.mean())
        yield type(search).__name__, [nan, float(search.best_score_ - new), nan, nan, error]


def command_line(split: Split, seed: int, method: str) -> Iterator[Difference]:
    """Own estimate of ``rareclass fit`` less new rows."""
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "train.parquet", Path(folder) / "model.rareclass"
        split.X.with_columns(the_target=pl.Series(split.y.astype(int))).write_parquet(table)
        words = ["fit", str(table), "--target", "the_target", "--out", str(model), "--positive"]
        words += ["1", "--method", method, "--seed", str(seed), "--no-baseline"]
        subprocess.run([sys.executable, "-m", "rareclass", *words], check=True, capture_output=True)
        fitted = load(model)
        held_out = fitted.held_out
        y, scores = held_out.y == 1, held_out.scores
        threshold = float(fitted.thresholds[0])
        probability = fitted.calibration(scores) if fitted.calibration is not None else np.nan
        own = figures(y, scores, threshold, probability, held_out.weight)
        new = fitted.score_samples(split.X_new.to_pandas())
        proba = fitted.calibration(new) if fitted.calibration is not None else np.nan
        yield f"fit --method {method}", _less(own, figures(split.y_new, new, threshold, proba))


def _less(own: list[float], other: list[float]) -> list[float]:
    return [a - b for a, b in zip(own, other, strict=True)]


def _of_held_out(model: RareClassifier) -> list[float]:
    y, scores = model.held_out_["rare"], model.held_out_["score"]
    return figures(y, scores, model.offset_, model.calibration_(scores))


def _of_new(model: RareClassifier, X: Any, y: np.ndarray) -> list[float]:
    scores = model.score_samples(X)
    return figures(y, scores, model.offset_, model.calibration_(scores))


def _filled(X: pl.DataFrame, mean: Any) -> np.ndarray:
    filled = [X[:, k].cast(pl.Float64).fill_null(value) for k, value in enumerate(mean)]
    return pl.DataFrame(filled).to_numpy()


CHECKS: dict[str, Callable[[Split, int], Iterator[Difference]]] = {
    "RareClassifier": rare_classifier,
    "audit": audited,
    "compare": compared,
    "CV classes": cross_validated,
    "fit --method rankrc": lambda split, seed: command_line(split, seed, "rankrc"),
    "fit --method mibc": lambda split, seed: command_line(split, seed, "mibc"),
}


def main(argv: list[str] | None = None) -> int:
    """Measure, print a line a table and a summary, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="*", default=[kind.name for kind in KINDS])
    parser.add_argument("--checks", nargs="*", default=list(CHECKS))
    parser.add_argument("--json")
    args = parser.parse_args(argv)
    cells = []
    for kind in KINDS:
        if kind.name not in args.tables:
            continue
        for seed in range(args.seeds):
            split = kind.split(seed)
            for check in args.checks:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for name, found in CHECKS[check](split, seed):
                        cell = dict(zip(MEASURES, found, strict=False))
                        cells.append(
                            {"table": kind.name, "columns": kind.columns, "seed": seed}
                            | {"what": name, **cell}
                        )
                        shown = ", ".join(f"{m} {v:+.3f}" for m, v in cell.items())
                        print(f"{kind.name}, seed {seed}, {name}: {shown}", flush=True)
    summary = summarise(cells)
    for line in summary:
        shown = ", ".join(f"{m} {v[0]:+.3f} ({v[1]:.3f})" for m, v in line["means"].items())
        print(f"{line['columns']}, {line['what']} ({line['n']}): {shown}")
    record.write("honest", {"seeds": args.seeds, "cells": cells, "summary": summary}, args.json)
    return 0


def summarise(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means of differences and their standard errors, by columns and what was asked."""
    lines = []
    for columns in ("codes", "words", "numbers", "nothing", "all"):
        for what in dict.fromkeys(cell["what"] for cell in cells):
            of_each = [c for c in cells if c["what"] == what and columns in (c["columns"], "all")]
            if not of_each:
                continue
            means = {}
            for measure in MEASURES:
                values = np.array([cell.get(measure, np.nan) for cell in of_each], dtype=float)
                values = values[~np.isnan(values)]
                if len(values) > 1:
                    error = float(values.std(ddof=1) / np.sqrt(len(values)))
                    means[measure] = (float(values.mean()), error)
            lines.append({"columns": columns, "what": what, "n": len(of_each), "means": means})
    return lines


if __name__ == "__main__":
    sys.exit(main())
