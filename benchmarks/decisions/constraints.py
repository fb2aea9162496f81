"""How often a threshold keeps its constraint: `python -m benchmarks.decisions.constraints`.

Held-out scores are drawn from populations that are known, so that what a threshold does on fresh
rows is computed and not sampled. Each draw has 20, 100 or 500 rare rows and 100 others to each.
Beside each other, on the same draws:

- rareclass: `ThresholdRule`, confidence 0.9.
- plain: the best threshold that keeps the constraint on the held-out rows themselves.
- scikit-learn: `TunedThresholdClassifierCV(cv="prefit")` on true probabilities, with a scorer that
  is the aim where the constraint is kept and -1 where not. Slow: on every 5th, 10th or 50th draw.
- MAPIE (`pip install mapie`): `BinaryClassificationController` on the same probabilities and draws
  as scikit-learn, confidence 0.9: with its defaults (100 thresholds, Bonferroni and Holm), and
  testing 100 thresholds evenly spaced in log-odds in the order in which the constraint gets harder
  to keep (for precision from ten starts). It controls the rate of alerts, not their number in a
  batch: confidence 0.95 that a batch keeps its budget with a chance of 0.95.

The second part learns as well: logistic regression on 5 columns, whose score is normal in each
class, so that the model of all rows can be judged exactly: `DecisionClassifier` and
`TunedThresholdClassifierCV`, 5 folds each and then all rows.

A rule may answer that no threshold is known to keep the constraint. "promised" is the share of
draws where it does promise one, "broken" the share of all draws with a promise that fresh rows
break: at most 10 percent at confidence 0.9. Others promise wherever held-out rows have a threshold.
"""

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from benchmarks.decisions import command
from benchmarks.markdown import table
from rareclass.decide import DecisionClassifier, ThresholdRule
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.scored_classes import FloatArray

CONFIDENCE = 0.9
RARE_ROWS = (20, 100, 500)
MAJORITY_PER_RARE = 100
PREVALENCE = 1.0 / (1.0 + MAJORITY_PER_RARE)
PRECISION, RECALL, FPR, ALERTS, BATCH = 0.3, 0.7, 0.01, 100, 5000
# Of the draws: those that are learned from, and of either those that scikit-learn sees.
LEARNED_SHARE = 4
PEER_SHARE = {20: 5, 100: 10, 500: 50}
DEFAULTS, SEQUENCE = MAPIE = ("MAPIE, defaults", "MAPIE, fixed sequence")
METHODS = ("rareclass", "plain", "scikit-learn", *(MAPIE if find_spec("mapie") else ()))
GRID = np.linspace(-4.0, 8.0, 2401)


class Population(NamedTuple):
    """Majority scores N(0, 1); rare ones N(c, 1), c any of `centres`; rounded to `step` if any."""

    name: str
    centres: tuple[float, ...]
    step: float = 0.0

    def draw(self, y: np.ndarray, rng: np.random.Generator) -> FloatArray:
        """A score for each row."""
        scores = rng.normal(size=len(y)) + np.where(y, rng.choice(self.centres, len(y)), 0.0)
        return np.round(scores / self.step) * self.step if self.step else scores

    def above(self, threshold: float) -> tuple[float, float]:
        """Shares of rare rows and of others that score above a threshold."""
        if self.step and np.isfinite(threshold):  # between two scores is where rounding divides
            threshold = (np.floor(threshold / self.step + 1e-9) + 0.5) * self.step
        rare = np.mean([special.ndtr(c - threshold) for c in self.centres])
        return float(rare), float(special.ndtr(-threshold))

    def probability(self, scores: FloatArray) -> FloatArray:
        """Chance that a row of this score is rare."""
        ratio = np.mean([np.exp(c * scores - c**2 / 2.0) for c in self.centres], axis=0)
        odds = PREVALENCE / (1.0 - PREVALENCE) * ratio
        return odds / (1.0 + odds)


POPULATIONS = (
    Population("2.5 apart", (2.5,)),
    Population("half 4 apart, half not", (0.0, 4.0)),
    Population("2.5 apart, rounded to halves", (2.5,), 0.5),
)


def precision_of(rare: float, majority: float) -> float:
    """At the prevalence of the population."""
    called = PREVALENCE * rare + (1.0 - PREVALENCE) * majority
    return PREVALENCE * rare / called if called else 1.0


def alert_chance(rare: float, majority: float) -> float:
    """Chance that a batch has few enough alerts."""
    rate = PREVALENCE * rare + (1.0 - PREVALENCE) * majority
    return float(special.bdtr(ALERTS, BATCH, rate))


class Case(NamedTuple):
    """A rule, how surely shares above a threshold keep it, and what it is to be good at."""

    rule: ThresholdRule
    kept: Callable[[float, float], float]
    gain: Callable[[float, float], float]
    gain_name: str


def recall_of(rare: float, majority: float) -> float:
    """Of the shares above a threshold the rare one."""
    return rare


CASES = (
    Case(ThresholdRule.min_precision(PRECISION),
         lambda r, m: float(precision_of(r, m) >= PRECISION), recall_of, "recall"),
    Case(ThresholdRule.min_recall(RECALL),
         lambda r, m: float(r >= RECALL), precision_of, "precision"),
    Case(ThresholdRule.max_fpr(FPR), lambda r, m: float(m <= FPR), recall_of, "recall"),
    Case(ThresholdRule.max_alerts(ALERTS, rows=BATCH), alert_chance, recall_of, "recall"),
)  # fmt: skip


def oracle(case: Case, above: Callable[[float], tuple[float, float]]) -> float:
    """What the best threshold gains that is known to keep the constraint."""
    shares = [above(t) for t in GRID]
    least = CONFIDENCE if case.kept is alert_chance else 1.0
    return max(case.gain(*s) for s in shares if case.kept(*s) >= least and sum(s) > 1e-9)


class ScoresAsClassifier(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only column is the probability itself."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> "ScoresAsClassifier":
        """Nothing to learn."""
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """The column."""
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def scored_by(case: Case, y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """What scikit-learn maximises: the gain where the rows keep the constraint, else -1."""
    rare, called = y_true == 1, y_pred == 1
    hits, alerts = np.count_nonzero(rare & called), np.count_nonzero(called)
    recall, fpr = hits / rare.sum(), (alerts - hits) / (~rare).sum()
    precision = hits / alerts if alerts else 0.0
    kept = (
        precision >= PRECISION,
        recall >= RECALL,
        fpr <= FPR,
        alerts * BATCH <= ALERTS * len(y_true),
    )[CASES.index(case)]
    if not kept:
        return -1.0
    return precision if case.gain_name == "precision" else recall


def tuned(case: Case, model: Any, X: FloatArray, y: np.ndarray, cv: Any) -> Any:
    """scikit-learn's answer, fitted."""
    scorer = make_scorer(partial(scored_by, case))
    refit = cv != "prefit"
    return TunedThresholdClassifierCV(model, scoring=scorer, cv=cv, refit=refit).fit(X, y)


# What MAPIE is asked for in each case: a metric, its level and the confidence.
CONTROLLED = (
    ("precision", PRECISION, CONFIDENCE),
    ("recall", RECALL, CONFIDENCE),
    ("fpr", FPR, CONFIDENCE),
    ("predicted_positive_fraction", float(special.bdtri(ALERTS, BATCH, 0.95)), 0.95),
)


def controlled(case: Case, name: str, probability: FloatArray, y: np.ndarray) -> float | None:
    """Return the threshold of the probability that MAPIE chooses, if any."""
    from mapie.risk_control import BinaryClassificationController, FWERFixedSequenceTesting

    risk, level, confidence = CONTROLLED[CASES.index(case)]
    how: dict[str, Any] = {}
    if name == SEQUENCE:
        thresholds = special.expit(np.linspace(*special.logit([0.003, 0.99]), 100))
        how["list_predict_params"] = thresholds if risk == "recall" else thresholds[::-1]
        how["fwer_method"] = FWERFixedSequenceTesting(10 if risk == "precision" else 1)
    controller = BinaryClassificationController(
        lambda column: np.column_stack([1.0 - column, column]), risk, level, confidence,
        best_predict_param_choice=case.gain_name, **how,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return controller.calibrate(probability, y).best_predict_param


class Tally:
    """Promises, breaches and gains of one method in one cell."""

    def __init__(self) -> None:
        self.draws, self.promised, self.broken, self.gain = 0, 0, 0.0, 0.0

    def add(self, case: Case, promised: bool, shares: tuple[float, float]) -> None:
        """One draw."""
        self.draws += 1
        if promised:
            self.promised += 1
            self.broken += 1.0 - case.kept(*shares)
            self.gain += case.gain(*shares)

    def summary(self, best: float) -> dict[str, float]:
        """Shares of draws, and the mean gain of promised thresholds beside the oracle's."""
        n = max(self.draws, 1)
        gain = self.gain / self.promised if self.promised else float("nan")
        return {
            "draws": self.draws,
            "promised": self.promised / n,
            "broken": self.broken / n,
            "kept_of_promised": 1.0 - self.broken / self.promised if self.promised else 1.0,
            "gain": gain,
            "gain_of_oracle": gain / best,
        }


Shares = Callable[[float], tuple[float, float]]
Tallies = dict[tuple[Case, str], Tally]


def add_ours(tallies: Tallies, held: HeldOutCuts, above: Shares) -> None:
    """Choose thresholds with confidence and without."""
    for case in CASES:
        for name, confidence in (("rareclass", CONFIDENCE), ("plain", None)):
            found = case.rule.constraint.find(held, confidence, None)
            tallies[case, name].add(case, found.met, above(held.threshold(found.cut)))


def add_mapie(tallies: Tallies, probability: FloatArray, y: np.ndarray, above: Shares) -> None:
    """Choose thresholds of the probability by MAPIE; `above` is given such a threshold."""
    for case, name in tallies:
        if name in MAPIE:
            threshold = controlled(case, name, probability, y.astype(int))
            promised = threshold is not None
            tallies[case, name].add(case, promised, above(threshold) if promised else (0.0, 0.0))


def given_scores(
    population: Population, n_rare: int, draws: int, seed: int
) -> list[dict[str, Any]]:
    """A cell for each constraint: thresholds of scores that are drawn."""
    rng = np.random.default_rng([seed, n_rare, POPULATIONS.index(population)])
    y = np.arange(n_rare * (1 + MAJORITY_PER_RARE)) < n_rare
    tallies = {(case, name): Tally() for case in CASES for name in METHODS}
    known = population.probability(GRID)
    for number in range(draws):
        scores = population.draw(y, rng)
        held = HeldOutCuts.read(y, scores)
        add_ours(tallies, held, population.above)
        if number % PEER_SHARE[n_rare]:
            continue
        probability = population.probability(scores)
        add_mapie(tallies, probability, y, lambda p: population.above(np.interp(p, known, GRID)))
        X = probability[:, None]
        for case in CASES:
            model = tuned(case, ScoresAsClassifier(), X, y.astype(int), "prefit")
            called = probability >= model.best_threshold_
            threshold = held.threshold(int(np.searchsorted(held.ends, called.sum())))
            promised = model.best_score_ >= 0.0
            tallies[case, "scikit-learn"].add(case, promised, population.above(threshold))
    return _cells(n_rare, population.name, population.above, tallies)


def learned_scores(n_rare: int, draws: int, seed: int) -> list[dict[str, Any]]:
    """The same with a model that is learned: five folds, then all rows."""
    rng = np.random.default_rng([seed, n_rare])
    y = np.arange(n_rare * (1 + MAJORITY_PER_RARE)) < n_rare
    centre = np.full(5, 2.5 / np.sqrt(5.0))
    tallies = {(case, name): Tally() for case in CASES for name in METHODS}

    def above(model: LogisticRegression, threshold: float) -> tuple[float, float]:
        slope = model.coef_[0]
        length = np.sqrt(slope @ slope)
        middle = (model.intercept_[0] - threshold) / length
        return float(special.ndtr(middle + centre @ slope / length)), float(special.ndtr(middle))

    for number in range(draws):
        X = rng.normal(size=(len(y), 5)) + y[:, None] * centre
        model = DecisionClassifier(LogisticRegression(), ThresholdRule.f_beta()).fit(X, y)
        shares = partial(above, model.estimator_)
        add_ours(tallies, HeldOutCuts.read(y, model.held_out_scores_), shares)
        if number % PEER_SHARE[n_rare]:
            continue
        probability = special.expit(model.held_out_scores_)
        add_mapie(tallies, probability, y, lambda p, of=shares: of(special.logit(p)))
        for case in CASES:
            peer = tuned(case, LogisticRegression(), X, y.astype(int), 5)
            found = above(peer.estimator_, float(special.logit(peer.best_threshold_)))
            tallies[case, "scikit-learn"].add(case, peer.best_score_ >= 0.0, found)
    name = "logistic regression, 5 folds and refit"
    return _cells(n_rare, name, POPULATIONS[0].above, tallies)


def _cells(n_rare: int, population: str, above: Shares, tallies: Tallies) -> list[dict[str, Any]]:
    cells = []
    for case in CASES:
        best = oracle(case, above)
        cells.append({
            "scores": population,
            "rare_rows": n_rare,
            "constraint": case.rule.words,
            "gain": case.gain_name,
            "oracle": best,
            **{name: tallies[case, name].summary(best) for name in METHODS},
        })  # fmt: skip
    return cells


def measure(draws: int, seed: int) -> dict[str, Any]:
    """Every population, number of rare rows and constraint."""
    start = time.perf_counter()
    if not find_spec("mapie"):
        print("MAPIE is left out: it is not installed (pip install mapie).")
    cells = []
    for n_rare in RARE_ROWS:
        for population in POPULATIONS:
            cells += given_scores(population, n_rare, draws, seed)
        if n_rare < max(RARE_ROWS):
            cells += learned_scores(n_rare, max(draws // LEARNED_SHARE, 1), seed)
        print(f"{n_rare} rare rows: {time.perf_counter() - start:.0f} s", flush=True)
    return {
        "parameters": {"draws": draws, "seed": seed},
        "confidence": CONFIDENCE,
        "seconds": time.perf_counter() - start,
        "cells": cells,
    }


def render(result: dict[str, Any]) -> str:
    """A table for each population: promised / broken in % of draws, gain as a part of the best."""
    parts = [
        "Each cell: draws in which the method promises a threshold / in which fresh rows break the "
        "promise, in %, then the gain as a share of the best possible threshold's. The last column "
        "is the gain of the best possible threshold."
    ]
    methods = [name for name in (*METHODS[:3], *MAPIE) if name in result["cells"][0]]
    for name in dict.fromkeys(cell["scores"] for cell in result["cells"]):
        rows = []
        for cell in (cell for cell in result["cells"] if cell["scores"] == name):
            line = [cell["constraint"], str(cell["rare_rows"])]
            for of in (cell[method] for method in methods):
                line.append(
                    f"{100 * of['promised']:.0f} / {100 * of['broken']:.1f}, "
                    f"{of['gain_of_oracle']:.2f}"
                )
            rows.append([*line, f"{cell['gain']} {cell['oracle']:.2f}"])
        header = ["constraint", "rare rows", *methods, "oracle"]
        parts.append(f"Scores: {name}\n\n{table(header, rows)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(command("constraints", __doc__, measure, render, 1000))
