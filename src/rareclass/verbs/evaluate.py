"""``rareclass evaluate``: a model's scores and decisions beside the known classes of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rareclass.encoding.target import labels_as_text
from rareclass.errors import InputError
from rareclass.tables.table_file import open_table
from rareclass.verbs.model_file import ModelFile
from rareclass.verbs.scored import Seen, scored
from rareclass.verbs.targets import decision_of
from rareclass.verbs.targets.target import Confusion, RankingEstimate


@dataclass(frozen=True)
class EvaluatedFile:
    """Measures of a model on a file with labels, and its decisions."""

    estimate: RankingEstimate
    confusion: Confusion
    n_unlabelled: int  # rows left out because their target is empty
    seen: Seen

    def as_plain_data(self) -> dict[str, Any]:
        """Return the evaluation as dictionaries and numbers."""
        return {
            **self.estimate.as_plain_data(),
            **self.confusion.numbers,
            "n_rows_without_target": self.n_unlabelled,
            "unseen_values": dict(self.seen.unseen_values),
            "outside_the_range": dict(self.seen.outside),
        }


def evaluate_file(content: ModelFile, data: Path, separator: str | None = None) -> EvaluatedFile:
    """Compare the scores of a file's rows with their labels.

    Raises `InputError` for anything wrong with the file; when it holds one class only.
    """
    file, seen = open_table(data, separator), Seen()
    target = content.metadata["target"]
    batches = list(scored(content, file, target, seen))
    if not batches:
        raise InputError(f"{data} has no rows.", "Give a file with rows.")
    labels = pl.concat([labels_as_text(batch.kept) for batch in batches if batch.kept is not None])
    scores = np.concatenate([batch.scores for batch in batches])
    decision = decision_of(content.model, content.metadata)
    y = decision.codes(labels, str(data))
    labelled = y >= 0
    y, scores = y[labelled], scores[labelled]
    return EvaluatedFile(
        decision.estimate(y, scores),
        decision.confusion(y, scores),
        int((~labelled).sum()),
        seen,
    )
