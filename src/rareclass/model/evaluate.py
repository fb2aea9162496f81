"""``rareclass evaluate``: a model's scores and decisions beside the known classes of a file."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import labels_as_text
from rareclass.errors import ErrorKind, InputError
from rareclass.metrics import Interval, precision_at_k_interval, recall_at_k_interval
from rareclass.metrics.interval import exact_interval
from rareclass.model.drift import Drift, InputSummary, alert_rate, drift_of, refuse_drift
from rareclass.model.facts import RankingEstimate
from rareclass.model.model import Model
from rareclass.model.rare_class import RareDecision
from rareclass.model.target import Confusion
from rareclass.tables.table_file import TablePlace, open_table

_TOPS = (10, 100)
_LEVEL = 0.95


@dataclass(frozen=True)
class DecisionRow:
    """Rows called rare in one way, and how often that was right, with 95 % intervals.

    Those of a threshold are exact (Clopper-Pearson). Those of the k highest are Wilson's for the
    recall in ``n_rare`` trials, and the same in units of the others, as k and the classes are given
    (`rareclass.metrics.precision_at_k_interval`).
    """

    name: str
    alerts: int
    precision: Interval  # NaN where no row was called
    recall: Interval
    false_positive_rate: Interval

    def as_plain_data(self) -> dict[str, Any]:
        """Return it as dictionaries and numbers; no precision is null."""
        given = asdict(self)
        for name in ("precision", "recall", "false_positive_rate"):
            value, low, high = (float(each) for each in getattr(self, name))
            given[name] = {"value": None if np.isnan(value) else value, "low": low, "high": high}
        return given


def decision_table(
    rare: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float
) -> list[DecisionRow]:
    """The threshold, then the 10, the 100 and as many highest rows as are rare, where there are."""
    tops = sorted({k for k in (*_TOPS, int(rare.sum())) if k < len(rare)})
    return [_above(rare, scores, threshold), *(_highest(rare, scores, k) for k in tops)]


def _above(rare: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float) -> DecisionRow:
    called = scores > threshold
    hits, alerts, n_rare = int((called & rare).sum()), int(called.sum()), int(rare.sum())
    return DecisionRow(
        "threshold",
        alerts,
        exact_interval(hits, alerts, _LEVEL),
        exact_interval(hits, n_rare, _LEVEL),
        exact_interval(alerts - hits, len(rare) - n_rare, _LEVEL),
    )


def _highest(rare: NDArray[np.bool_], scores: NDArray[np.float64], k: int) -> DecisionRow:
    precision = precision_at_k_interval(rare, scores, k, level=_LEVEL)
    n_rest = len(rare) - int(rare.sum())
    value, low, high = precision
    return DecisionRow(
        f"highest {k:,}",
        k,
        precision,
        recall_at_k_interval(rare, scores, k, level=_LEVEL),
        Interval(*(min((1.0 - each) * k / n_rest, 1.0) for each in (value, high, low))),
    )


@dataclass(frozen=True)
class ProbabilityQuality:
    """Probabilities of rows beside their labels; smaller losses are better.

    The losses of giving every row the true share say what probabilities are worth.
    """

    mean: float
    share: float  # of rare rows
    log_loss: float  # mean of -ln of the probability of the row's own class
    brier: float  # mean of (probability - label)^2
    log_loss_of_share: float  # of the true share for every row
    brier_of_share: float


def probability_quality(
    rare: NDArray[np.bool_], probability: NDArray[np.float64]
) -> ProbabilityQuality:
    r"""Log loss ``-mean(y ln p + (1 - y) ln(1 - p))`` and Brier score ``mean (p - y)^2``.

    `probability` lies strictly between 0 and 1, and both classes are there. O(n).
    """
    share = float(rare.mean())
    return ProbabilityQuality(
        float(probability.mean()),
        share,
        -float(np.log(np.where(rare, probability, 1.0 - probability)).mean()),
        float(np.square(probability - rare).mean()),
        -float(share * np.log(share) + (1.0 - share) * np.log(1.0 - share)),
        share * (1.0 - share),
    )


@dataclass(frozen=True)
class EvaluatedFile:
    """Measures of a model on a file with labels, and its decisions."""

    estimate: RankingEstimate
    confusion: Confusion
    n_unlabelled: int  # rows left out because their target is empty
    seen: InputSummary
    drift: Drift
    table: list[DecisionRow]  # of a rare class: at the threshold, and the highest rows
    probabilities: ProbabilityQuality | None  # where the model has them

    def as_plain_data(self) -> dict[str, Any]:
        """Return the evaluation as dictionaries and numbers."""
        return {
            **self.estimate.as_plain_data(),
            **self.confusion.numbers,
            "n_rows_without_target": self.n_unlabelled,
            "unseen_values": dict(self.seen.unseen_values),
            "outside_the_range": dict(self.seen.outside),
            "empty_where_none_was": dict(self.seen.emptied),
            **self.drift.as_plain_data(),
            "decisions": [each.as_plain_data() for each in self.table],
            "probabilities": None if self.probabilities is None else asdict(self.probabilities),
        }


def evaluate_file(
    content: Model, data: TablePlace, separator: str | None = None, strict: bool = False
) -> EvaluatedFile:
    """Compare the scores of a file's rows with their labels.

    Raises `InputError` for anything wrong with the file; when it holds one class only; where
    `strict`, for rows unlike those of training (`refuse_drift`).
    """
    file, seen = open_table(data, separator, one_pass=True), InputSummary()
    target = content.target
    batches = list(content.score_batches(file, target, seen))
    if not batches:
        raise InputError(f"{data} has no rows.", "Give a file with rows.", ErrorKind.TOO_FEW_ROWS)
    labels = pl.concat([labels_as_text(batch.kept) for batch in batches if batch.kept is not None])
    scores = np.concatenate([batch.scores for batch in batches])
    decision = content.decision
    y = decision.codes(labels, str(data))
    labelled = y >= 0
    rate = None
    if isinstance(decision, RareDecision):
        threshold = float(decision.thresholds[0])
        n_alerts = int((scores > threshold).sum())
        rate = alert_rate(content.held_out, threshold, n_alerts, len(scores))
    drift = drift_of(seen, rate)
    if strict:
        refuse_drift(drift, str(data))
    y, scores = y[labelled], scores[labelled]
    table: list[DecisionRow] = []
    quality = None
    if isinstance(decision, RareDecision):
        table = decision_table(y == 1, scores, float(decision.thresholds[0]))
        if content.calibration is not None:
            quality = probability_quality(y == 1, content.calibration(scores))
    return EvaluatedFile(
        decision.estimate(y, scores),
        decision.confusion(y, scores),
        int((~labelled).sum()),
        seen,
        drift,
        table,
        quality,
    )
