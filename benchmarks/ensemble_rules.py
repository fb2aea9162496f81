"""Rules that combine members, beside each other: `python -m benchmarks.ensemble_rules`.

On splits of real tables every member of `RareClassifier` is learned once, with five folds; then
each rule makes weights of the same held-out scores and is measured on the same test rows:

- scales: ranks among the held-out majority, or the logarithm of the false-positive rate
- rules: the best member, plain means, greedy selection that begins with none, three or five, by
  average precision or by AUC, the mean of both, a stacked logistic regression; and as kept: the
  mean of both among members near the best, half of the weight shared alike

Printed for sets that the rule was chosen on and for the others apart (`benchmarks.tabular.sets`),
and for few and many rare rows: mean AUC, mean average precision, and mean ranks among the rules.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular.sets import CHOSEN_ON, SETS, load, split
from rareclass import RareClassifier
from rareclass.ensemble.combination import (
    ScaledCandidate,
    best_settings,
    combine,
    greedy_weights,
)
from rareclass.ensemble.cost_model import CostModel
from rareclass.ensemble.members.registry import make_members
from rareclass.ensemble.race import Race, TimeBudget
from rareclass.ensemble.rare_classifier import is_of_use
from rareclass.ensemble.training_rows import FitInput, HeldOutRows, TrainingViews
from rareclass.metrics import average_precision, roc_auc

SMALL = (
    "abalone7", "mammograph", "oil", "yeastml8", "euthyroid", "ecoli",
    "abalone19", "wine4", "solarm0", "vowel0", "spambase", "contra2",
)  # fmt: skip
FEW_RARE = 130
MOST_JUDGED = 4_000


def measured(name: str, number: int, members: Any) -> dict[str, Any]:
    """AUC and average precision of every rule on the test rows of a split."""
    rows = load(name, data_folder() or Path())
    train, test = split(rows, number)
    frame, y = rows.part(train)
    model = RareClassifier(members=members, verbose=False)
    typed = model._read(FitInput(frame, y), 0)
    views = TrainingViews(typed)
    held_out = HeldOutRows.of(typed, 0)
    race = Race(views, held_out, TimeBudget(1e9), CostModel(), 0, 1)
    race.run([member for member in make_members(members) if is_of_use(member, views)])
    combined = combine(race.candidates, held_out, average_precision, compact=False, seed=0)
    judged = combined.candidates
    frame, y = rows.part(test)
    encoded = views.statistics.encode(model._typed(frame))
    new = [_scored(each, views, encoded) for each in judged]
    rules = _rules(judged, new, held_out)
    by_log_rate = np.column_stack(
        [-each.scale(scores) for each, scores in zip(judged, new, strict=True)]
    )
    rules["as kept"] = by_log_rate @ combined.weights
    return {
        "set": name,
        "split": number,
        "rare": int(views.rows.is_rare.sum()),
        "rules": {
            rule: [roc_auc(y, scores), average_precision(y, scores)]
            for rule, scores in rules.items()
        },
    }


def _scored(judged: ScaledCandidate, views: TrainingViews, encoded: Any) -> np.ndarray:
    candidate = judged.candidate
    X = views.views[candidate.member.view].transform(encoded)
    return candidate.function.scores(X)


def _rules(
    judged: Sequence[ScaledCandidate], new: Sequence[np.ndarray], held_out: HeldOutRows
) -> dict[str, np.ndarray]:
    """Test scores by rule."""
    chosen = best_settings(judged, 1)
    rng = np.random.default_rng(0)
    y = held_out.is_rare[held_out.tested]
    rest = rng.permutation(np.flatnonzero(~y))[:MOST_JUDGED]
    places = np.sort(np.concatenate([np.flatnonzero(y), rest]))
    y = y[places]
    old_log = np.column_stack([judged[k].rarity[places] for k in chosen])
    new_log = np.column_stack([-judged[k].scale(new[k]) for k in chosen])
    scores: dict[str, np.ndarray] = {"best member": new_log[:, 0]}

    def by(merit: Any) -> Any:
        return lambda combined: merit(y, combined)

    for scale, old, fresh in (
        ("log rate", old_log, new_log),
        ("rank", 1.0 - np.exp(-old_log), 1.0 - np.exp(-new_log)),
    ):
        scores[f"{scale}, mean"] = fresh.mean(axis=1)
        for n_begin in (0, 3, 5):
            for words, merit in (("AP", average_precision), ("AUC", roc_auc)):
                weights = greedy_weights(old, by(merit), n_begin)
                scores[f"{scale}, greedy from {n_begin} by {words}"] = fresh @ weights
        both = [by(average_precision), by(roc_auc)]
        scores[f"{scale}, mean of both"] = fresh @ np.mean(
            [greedy_weights(old, each) for each in both], axis=0
        )
        for C in (0.01, 0.1):
            stacked = LogisticRegression(C=C, class_weight="balanced").fit(old, y)
            scores[f"{scale}, stacked logistic C {C:g}"] = fresh @ stacked.coef_[0]
    return scores


def render(runs: Sequence[dict[str, Any]]) -> str:
    """The tables."""
    parts = {
        "Chosen on": [run for run in runs if run["set"] in CHOSEN_ON],
        "Confirmed on": [run for run in runs if run["set"] not in CHOSEN_ON],
        f"Fewer than {FEW_RARE} rare rows": [run for run in runs if run["rare"] < FEW_RARE],
        f"{FEW_RARE} or more": [run for run in runs if run["rare"] >= FEW_RARE],
    }
    return "\n\n".join(_table(title, part) for title, part in parts.items() if part)


def _table(title: str, runs: Sequence[dict[str, Any]]) -> str:
    names = list(runs[0]["rules"])
    values = np.array([[run["rules"][name] for name in names] for run in runs])
    ranks = np.array([[rankdata(-column) for column in run.T] for run in values]).mean(axis=0)
    loss = (values[:, :, 1].max(axis=1, keepdims=True) - values[:, :, 1]).max(axis=0)
    order = np.argsort(ranks.sum(axis=0))
    mean = 100.0 * values.mean(axis=0)
    rows = [
        [
            names[k],
            f"{mean[k, 0]:.2f}",
            f"{ranks[0, k]:.1f}",
            f"{mean[k, 1]:.2f}",
            f"{ranks[1, k]:.1f}",
            f"{100.0 * loss[k]:.1f}",
        ]
        for k in order
    ]
    head = ["rule", "AUC", "rank", "AP", "rank", "worst loss of AP"]
    sets = ", ".join(dict.fromkeys(run["set"] for run in runs))
    return f"{title} ({len(runs)} runs: {sets})\n\n{table(head, rows)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--sets", nargs="+", default=SMALL, choices=list(SETS))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--members", nargs="+", default=["auto"])
    parser.add_argument("--json")
    args = parser.parse_args(argv)
    runs = []
    for name in args.sets:
        for number in range(args.splits):
            runs.append(measured(name, number, args.members))
            print(f"{name}, split {number}", file=sys.stderr, flush=True)
    record.write("ensemble_rules", {"runs": runs}, args.json)
    print(render(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
