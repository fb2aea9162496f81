"""Called rare above a threshold, rest below."""

from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import is_rare
from rareclass.errors import InputError
from rareclass.verbs.targets.decision import Confusion
from rareclass.verbs.targets.held_out import Estimate, estimate_rare


class RareDecision:
    """Code 1 above the threshold; see `rareclass.verbs.targets.decision.Decision`.

    Parameters
    ----------
    model : estimator
        Its ``offset_`` is the threshold.
    metadata : dict
        Of the model file.
    """

    needed: ClassVar[set[str]] = {"rare_label", "rest_label", "majority_quantiles"}
    quantiles: ClassVar[str] = "majority_quantiles"
    column: ClassVar[str] = "called_rare"
    n_codes = 2

    def __init__(self, model: Any, metadata: dict[str, Any]) -> None:
        self._threshold = model.offset_
        self._rare: str = metadata["rare_label"]
        self._rest: str = metadata["rest_label"]
        self._known = metadata.get("label_counts", ())

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return 1 above the threshold."""
        return (scores > self._threshold).astype(np.intp)

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return truth values."""
        return pl.Series(self.column, called == 1)

    def rules(self) -> list[str]:
        """Return nothing: a threshold of scores says little."""
        return []

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many are above the threshold."""
        n_rows, n_rare = int(n_called.sum()), int(n_called[1])
        return (
            f"Scored {n_rows:,} rows; {n_rare:,} ({n_rare / n_rows:.2%}) are above the threshold "
            f"for {self._rare}."
        )

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.intp]:
        """Return 1 for the rare label, however the new file writes it."""
        labelled = labels.is_not_null().to_numpy()
        rare = is_rare(labels.filter(pl.Series(labelled)), self._rare, self._known)
        if not rare.any() or rare.all():
            share = "every" if len(rare) and rare.all() else "no"
            raise InputError(
                f"{file}: {share} row has the target value {self._rare!r}.",
                "Both classes are needed to measure a ranking.",
            )
        codes = np.full(len(labels), -1, dtype=np.intp)
        codes[labelled] = rare
        return codes

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Estimate:
        """Return AUC, average precision and precision at k."""
        return estimate_rare(y == 1, scores, weight)

    def confusion(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Confusion:
        """Return the four counts, precision and recall."""
        called, rare = self.decide(scores), (y == 1).astype(np.intp)
        counts = np.bincount(2 * rare + called, weight, 4).reshape(2, 2)[::-1, ::-1]
        (true_rare, missed_rare), (false_rare, true_rest) = counts
        n_called = true_rare + false_rare
        precision = float(true_rare / n_called) if n_called else None
        recall = float(true_rare / (true_rare + missed_rare))
        shown = "none called" if precision is None else f"{precision:.3f}"
        return Confusion(
            "At the model's threshold",
            [self._rare, self._rest],
            ["rare", "rest"],
            counts,
            [f"Precision {shown}, recall {recall:.3f}"],
            {
                "at_threshold": {
                    "true_rare": int(true_rare),
                    "false_rare": int(false_rare),
                    "missed_rare": int(missed_rare),
                    "true_rest": int(true_rest),
                    "precision": precision,
                    "recall": recall,
                }
            },
        )
