"""Called the level between whose thresholds a score lies."""

from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import InputError
from rareclass.metrics import mauc_interval, roc_auc_interval
from rareclass.verbs.targets.decision import Confusion
from rareclass.verbs.targets.held_out import Estimate, as_measure
from rareclass.verbs.targets.level_target import as_numbers, codes_among


class LevelDecision:
    """Code k where ``thresholds[k - 1] < score <= thresholds[k]``.

    See `rareclass.verbs.targets.decision.Decision`.

    Parameters
    ----------
    model : estimator
        Its ``thresholds_`` are the scores at which levels end.
    metadata : dict
        Of the model file.
    """

    needed: ClassVar[set[str]] = {"levels", "quantiles"}
    quantiles: ClassVar[str] = "quantiles"
    column: ClassVar[str] = "level"

    def __init__(self, model: Any, metadata: dict[str, Any]) -> None:
        self._thresholds = np.asarray(model.thresholds_)
        self._levels: list[str] = metadata["levels"]
        self.n_codes = len(self._levels)

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the position of the level of each score."""
        return np.searchsorted(self._thresholds, scores, side="left")

    def cells(self, called: NDArray[np.intp]) -> pl.Series:
        """Return levels, as numbers where all of them are."""
        numbers = as_numbers(self._levels)
        names = pl.Series(self.column, self._levels if numbers is None else numbers)
        return names.gather(called)

    def rules(self) -> list[str]:
        """Return the scores of each level, and the levels that no score is called."""
        ends = [-np.inf, *self._thresholds, np.inf]
        called = [k for k in range(self.n_codes) if ends[k] < ends[k + 1]]
        named = [f"{self._levels[k]} up to {ends[k + 1]:.3g}" for k in called[:-1]]
        named.append(f"{self._levels[called[-1]]} above" if named else self._levels[called[-1]])
        lines = [f"Levels by score: {', '.join(named)}"]
        never = [self._levels[k] for k in range(self.n_codes) if k not in called]
        if never:
            lines.append(f"Never called, for others are nearer at any score: {', '.join(never)}")
        return lines

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many were called each level."""
        each = zip(self._levels, n_called, strict=True)
        named = ", ".join(f"{name} ({n:,})" for name, n in each if n)
        return f"Scored {int(n_called.sum()):,} rows; they are called {named}."

    def codes(self, labels: pl.Series, file: str) -> NDArray[np.intp]:
        """Return positions of levels, however the new file writes them."""
        code_of = codes_among(labels.drop_nulls().unique().to_list(), self._levels)
        codes = labels.replace_strict(code_of, default=-1, return_dtype=pl.Int64).to_numpy()
        unknown = np.flatnonzero((codes < 0) & labels.is_not_null().to_numpy())
        if len(unknown):
            row = int(unknown[0])
            raise InputError(
                f"{file}: the target value {labels[row]!r} at row {row + 1} is not among the "
                f"levels of the model: {', '.join(self._levels)}.",
                "Correct it, or leave it empty: rows without a target are left out.",
            )
        present = np.unique(codes[codes >= 0])
        if len(present) < 2:
            held = f"only {self._levels[present[0]]!r}" if len(present) else "nothing"
            raise InputError(
                f"{file}: the target holds {held}.",
                "Rows of two levels are needed to measure a ranking.",
            )
        return codes.astype(np.intp)

    def estimate(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Estimate:
        """Return MAUC, and the AUC of the rows above each level that some are above."""
        order = range(self.n_codes)
        measures = [as_measure("MAUC", mauc_interval(y, scores, weight, levels=order))]
        present = np.unique(y)
        if len(present) > 2:  # of two levels it is the MAUC
            for code in present[:-1]:
                interval = roc_auc_interval(y > code, scores, weight)
                measures.append(as_measure(f"AUC above {self._levels[code]}", interval))
        return Estimate(measures, float(len(y) if weight is None else weight.sum()))

    def confusion(
        self,
        y: NDArray[np.integer],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None = None,
    ) -> Confusion:
        """Return rows by level and called level, and how far these are apart."""
        called, n = self.decide(scores), self.n_codes
        counts = np.bincount(n * np.asarray(y, dtype=np.intp) + called, weight, n * n)
        counts = counts.reshape(n, n)
        distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        n_rows = counts.sum(axis=1)
        present = n_rows > 0
        errors = (counts * distance).sum(axis=1)
        right, near = counts.trace() / n_rows.sum(), counts[distance <= 1].sum() / n_rows.sum()
        error = errors.sum() / n_rows.sum()
        balanced = (errors[present] / n_rows[present]).mean()
        within = f", {near:.1%} within one level" if n > 2 else ""
        lines = [
            f"Called the right level: {right:.1%} of the rows{within}",
            f"Distance to the right level: {error:.3f} levels on average; {balanced:.3f} when each "
            "level counts the same",
        ]
        return Confusion(
            "At the model's thresholds",
            self._levels,
            self._levels,
            counts,
            lines,
            {
                "confusion": {"levels": self._levels, "is_by_called": counts.tolist()},
                "right": float(right),
                "within_one_level": float(near),
                "mean_distance": float(error),
                "mean_distance_levels_alike": float(balanced),
            },
            in_brief=lines,
        )
