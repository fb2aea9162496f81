"""``rareclass evaluate``: a model's scores and decisions beside the known classes of a file."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from rareclass.encoding.target import labels_as_text
from rareclass.errors import InputError
from rareclass.model.decision_table import DecisionRow, decision_table
from rareclass.model.drift import Drift, alert_rate, drift_of, refuse_drift
from rareclass.model.model_file import ModelFile
from rareclass.model.probability_quality import ProbabilityQuality, probability_quality
from rareclass.model.scored import Seen, scored
from rareclass.model.targets import decision_of
from rareclass.model.targets.rare_class import RareDecision
from rareclass.model.targets.target import Confusion, RankingEstimate
from rareclass.tables.table_file import TablePlace, open_table


@dataclass(frozen=True)
class EvaluatedFile:
    """Measures of a model on a file with labels, and its decisions."""

    estimate: RankingEstimate
    confusion: Confusion
    n_unlabelled: int  # rows left out because their target is empty
    seen: Seen
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
    content: ModelFile, data: TablePlace, separator: str | None = None, strict: bool = False
) -> EvaluatedFile:
    """Compare the scores of a file's rows with their labels.

    Raises `InputError` for anything wrong with the file; when it holds one class only; where
    `strict`, for rows unlike those of training (`refuse_drift`).
    """
    file, seen = open_table(data, separator, one_pass=True), Seen()
    target = content.metadata["target"]
    batches = list(scored(content, file, target, seen))
    if not batches:
        raise InputError(f"{data} has no rows.", "Give a file with rows.")
    labels = pl.concat([labels_as_text(batch.kept) for batch in batches if batch.kept is not None])
    scores = np.concatenate([batch.scores for batch in batches])
    decision = decision_of(content.model, content.metadata)
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
