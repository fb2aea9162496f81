"""Tests on out-of-fold scores: `python -m benchmarks.decisions.folds [--json FILE]`.

Two learners of linear discriminants share some columns and have others of their own; the learner of
each sees normal rows, and its models of 5 folds score the rows that they did not learn from. Where
both learners have equally good columns neither is better but by chance. Tests of the difference at
5 %, side by side on the same samples:

- pooled: scores on the scale of their fold's false-positive rates, pooled, and
  `rareclass.metrics.paired_difference` of the pooled columns
- rareclass: the same with its interval stretched for what other training rows would change, as
  `rareclass.compare.compare_methods` has it
- raw: as pooled, of the scores as they are
- folds: the mean of the folds' differences, their variance that of each fold's paired test put
  together, t of n_rare - 5 degrees of freedom
- t: Student's t of the 5 differences
- corrected t: Nadeau and Bengio's, whose variance is times 1/5 + 1/4 in place of 1/5

The truth is known exactly for the models that were fitted: coverage is of that.
Then four equally good columns of normal scores: how often is any called worse than the best?
"""

import sys
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from benchmarks.decisions import command
from benchmarks.markdown import table
from rareclass.compare.score_columns import adjusted_for_the_choice
from rareclass.folds.score_scale import on_scale_of_folds
from rareclass.metrics import paired_difference, roc_auc
from rareclass.metrics.intervals import stretch_for_training
from rareclass.metrics.paired_evidence import EVIDENCE
from rareclass.metrics.scored_classes import split_pair

LEVEL = 0.95
N_FOLDS = 5
RARE_ROWS = {20: 50, 100: 30}  # -> other rows to each
MEASURES = ("roc_auc", "average_precision")
METHODS = ("rareclass", "corrected t", "pooled", "raw", "folds", "t")
OF_MODELS = ("rareclass", "pooled", "raw")
STRETCH = stretch_for_training(N_FOLDS, N_FOLDS - 1)
EQUAL_COLUMNS = 4


class Learners(NamedTuple):
    """Columns of both learners; shifts of rare rows in standard deviations."""

    shared: float  # of two columns that both have
    own: tuple[float, float]  # of two columns of each
    n_noise: int  # columns of each that say nothing

    @property
    def is_null(self) -> bool:
        """Whether neither is better."""
        return self.own[0] == self.own[1]

    @property
    def name(self) -> str:
        """In words."""
        own = " and ".join(f"{shift:g}" for shift in dict.fromkeys(self.own))
        return f"shared {self.shared:g}, own {own}, {self.n_noise} of noise"


LEARNERS = [
    Learners(1.0, (1.0, 1.0), 5),
    Learners(1.5, (0.5, 0.5), 5),
    Learners(0.5, (0.5, 0.5), 20),
    Learners(1.5, (0.2, 0.2), 40),
    Learners(1.0, (1.3, 0.7), 5),
    Learners(1.0, (1.0, 0.5), 20),
]


def sample(learners: Learners, n_rare: int, rng: np.random.Generator) -> dict[str, Any]:
    """Rows, folds, both columns of out-of-fold scores, and what is true of the fitted models."""
    n = n_rare * (1 + RARE_ROWS[n_rare])
    y = np.arange(n) < n_rare
    fold = np.concatenate([np.arange(n_rare), np.arange(n - n_rare)]) % N_FOLDS
    shared = rng.normal(size=(n, 2))
    columns, models = [], []
    for own in learners.own:
        X = np.hstack([shared, rng.normal(size=(n, 2 + learners.n_noise))])
        shift = np.array([learners.shared] * 2 + [own] * 2 + [0.0] * learners.n_noise)
        shift[:4] /= np.sqrt(2.0)
        X[y] += shift
        scores, of_folds = np.empty(n), []
        for k in range(N_FOLDS):
            w = discriminant(X[fold != k], y[fold != k])
            scores[fold == k] = X[fold == k] @ w
            size = float(np.linalg.norm(w))
            of_folds.append((float(w @ shift), size))
        columns.append(scores)
        models.append(np.array(of_folds))
    return {"y": y, "fold": fold, "columns": columns, "models": models}


def discriminant(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fisher's linear discriminant with a little ridge."""
    centred = X[~y] - X[~y].mean(axis=0)
    covariance = centred.T @ centred / len(centred) + 0.01 * np.eye(X.shape[1])
    return np.linalg.solve(covariance, X[y].mean(axis=0) - X[~y].mean(axis=0))


def truths(models: np.ndarray, n_rare: int) -> dict[str, dict[str, float]]:
    """AUC and average precision of the models on endless rows, pooled on either scale."""
    means, sizes = models.T[:, :, None]
    z = np.linspace(-9.0, 9.0, 4001)
    on_scale = special.ndtr(means / sizes - z).mean(axis=0), special.ndtr(-z)
    c = z * sizes.max()
    raw = special.ndtr((means - c) / sizes).mean(axis=0), special.ndtr(-c / sizes).mean(axis=0)
    found = {}
    for name, (recall, fpr) in (("pooled", on_scale), ("raw", raw)):
        in_bin = recall[:-1] - recall[1:]
        middle, rate = (recall[:-1] + recall[1:]) / 2, (fpr[:-1] + fpr[1:]) / 2
        found[name] = {
            "roc_auc": float(1.0 - in_bin @ rate),
            "average_precision": float(in_bin @ (middle / (middle + RARE_ROWS[n_rare] * rate))),
        }
    return {"rareclass": found["pooled"], **found}


def tested(drawn: dict[str, Any], measure: str) -> dict[str, Any]:
    """Interval of the difference by each of `METHODS`."""
    y, fold, raw = drawn["y"], drawn["fold"], drawn["columns"]
    scaled = [on_scale_of_folds(y, column, fold) for column in raw]
    found = {}
    for name, (a, b) in (("pooled", scaled), ("raw", raw)):
        evidence = EVIDENCE[measure](split_pair(y, a, b))
        value, low, high = evidence.interval(LEVEL)
        found[name] = low, high
        if name == "pooled":
            low, high = (value + STRETCH * (bound - value) for bound in (low, high))
            found["rareclass"] = low, high
    differences, variances = [], []
    for k in range(N_FOLDS):
        own = fold == k
        pair = split_pair(y[own], raw[0][own], raw[1][own])
        evidence = EVIDENCE[measure](pair)
        differences.append(evidence.a(LEVEL).value - evidence.b(LEVEL).value)
        variances.append(evidence.deviation**2)
    mean, s2 = float(np.mean(differences)), float(np.var(differences, ddof=1))
    for name, variance, freedom in (
        ("folds", np.sum(variances) / N_FOLDS**2, y.sum() - N_FOLDS),
        ("t", s2 / N_FOLDS, N_FOLDS - 1),
        ("corrected t", s2 * (1 / N_FOLDS + 1 / (N_FOLDS - 1)), N_FOLDS - 1),
    ):
        reach = special.stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(variance)
        found[name] = (mean - reach, mean + reach)
    return found


def simulated(learners: Learners, n_rare: int, samples: int, seed: int) -> list[dict[str, Any]]:
    """How often each method tells the learners apart, and holds what is true of the models."""
    rng = np.random.default_rng([seed, n_rare, LEARNERS.index(learners)])
    apart = {measure: dict.fromkeys(METHODS, 0) for measure in MEASURES}
    holds = {measure: dict.fromkeys(OF_MODELS, 0) for measure in MEASURES}
    for _ in range(samples):
        drawn = sample(learners, n_rare, rng)
        true = [truths(models, n_rare) for models in drawn["models"]]
        for measure in MEASURES:
            for name, (low, high) in tested(drawn, measure).items():
                apart[measure][name] += not low <= 0.0 <= high
                if name in true[0]:
                    difference = true[0][name][measure] - true[1][name][measure]
                    holds[measure][name] += low <= difference <= high
    about = {"rare_rows": n_rare, "learners": learners.name, "null": learners.is_null}
    return [
        about
        | {"measure": measure, "samples": samples}
        | {"apart": {name: count / samples for name, count in apart[measure].items()}}
        | {"holds": {name: count / samples for name, count in holds[measure].items()}}
        for measure in MEASURES
    ]


def equal_columns(n_rare: int, samples: int, seed: int) -> dict[str, Any]:
    """Share of samples in which any of some equally good columns is called worse than the best."""
    rng = np.random.default_rng([seed, n_rare, 99])
    n = n_rare * (1 + RARE_ROWS[n_rare])
    y = np.arange(n) < n_rare
    apart = {"all pairs": 0, "with the best": 0, "none": 0}
    for _ in range(samples):
        columns = rng.normal(size=(EQUAL_COLUMNS, n)) + rng.normal(size=n) + 2.0 * y
        best, *others = sorted(columns, key=lambda column: -roc_auc(y, column))
        p = sorted(paired_difference(y, other, best).p_value for other in others)
        apart["all pairs"] += adjusted_for_the_choice(p)[0] < 1 - LEVEL
        apart["with the best"] += p[0] * len(p) < 1 - LEVEL
        apart["none"] += p[0] < 1 - LEVEL
    shares = {name: count / samples for name, count in apart.items()}
    return {"rare_rows": n_rare, "samples": samples, "apart": shares}


def measure(draws: int, seed: int) -> dict[str, Any]:
    """All learners at all sizes, and the columns that are equally good."""
    rows = [
        row
        for n_rare in RARE_ROWS
        for learners in LEARNERS
        for row in simulated(learners, n_rare, draws, seed)
    ]
    equal = [equal_columns(n_rare, 5 * draws, seed) for n_rare in RARE_ROWS]
    return {"folds": rows, "equal": equal}


def render(result: dict[str, Any]) -> str:
    """Tables in percent."""
    parts = []
    for title, null in (
        ("Equally good learners called different", True),
        ("Different learners called different", False),
    ):
        rows = [row for row in result["folds"] if row["null"] is null]
        body = [
            [row["learners"], str(row["rare_rows"]), row["measure"].replace("_", " ")]
            + [f"{100 * row['apart'][name]:.1f}" for name in METHODS]
            for row in rows
        ]
        header = ["columns of the learners", "rare rows", "measure", *METHODS]
        parts.append(f"{title} at 5 %, in % of {rows[0]['samples']} samples\n\n" +
                     table(header, body))  # fmt: skip
    body = [
        [str(n_rare), name.replace("_", " ")]
        + [
            f"{100 * np.mean(held):.1f} ({100 * min(held):.1f})"
            for method in OF_MODELS
            for held in [[r["holds"][method] for r in result["folds"]
                          if (r["rare_rows"], r["measure"]) == (n_rare, name)]]
        ]
        for n_rare in RARE_ROWS
        for name in MEASURES
    ]  # fmt: skip
    parts.append(
        "True difference of the fitted models inside the 95 % interval, in %, mean (lowest)\n\n"
        + table(["rare rows", "measure", *OF_MODELS], body)
    )
    body = [
        [str(row["rare_rows"])] + [f"{100 * share:.1f}" for share in row["apart"].values()]
        for row in result["equal"]
    ]
    parts.append(
        f"Any of {EQUAL_COLUMNS} equally good columns called worse than the best by AUC, in % of "
        f"{result['equal'][0]['samples']} samples, by the pairs that p-values are corrected for\n\n"
        + table(["rare rows", "all pairs", "those with the best", "none"], body)
    )
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(command("decisions_folds", __doc__, measure, render, 200))
