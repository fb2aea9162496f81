"""OrdinalRankRC as the command line runs it: levels in order, landmarks, lam, memory."""

from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

import numpy as np

from rareclass.errors import InputError
from rareclass.ranking import OrdinalRankRC, OrdinalRankRCCV
from rareclass.ranking.rankrc_cv import PAPER_LAMS
from rareclass.verbs.fit.duration import LONG_SECONDS, duration_text, rankrc_seconds
from rareclass.verbs.fit.landmark_choice import check_kernel_memory, choose_landmarks, n_landmarks
from rareclass.verbs.fit.method import EncodedRows, TableSize, Terms, how_chosen
from rareclass.verbs.fit.rankrc_method import DEFAULT_LAM
from rareclass.verbs.targets.level_target import LevelTarget, level_target
from rareclass.verbs.targets.target import FoundLabels


@dataclass(frozen=True)
class OrdinalMethod:
    """A kernel machine for ordered levels; see `rareclass.verbs.fit.method.Method`.

    Attributes
    ----------
    lam : float or None
        Strength of the regulariser; None chooses it by cross-validation.
    levels : tuple of str or None
        From the lowest to the highest; None takes numbers by size.
    """

    name: ClassVar[str] = "ordinal-rankrc"
    parameter: ClassVar[str] = "lam"

    lam: float | None = None
    levels: tuple[str, ...] | None = None

    def read_target(self, found: FoundLabels, positive: str | None) -> LevelTarget:
        """Return the labels in order; there is no rare class among them to name."""
        if positive is not None:
            raise InputError(
                f"--positive {positive} names a rare class, but {self.name} ranks all levels.",
                "Leave --positive out, or give --method rankrc.",
            )
        return level_target(found, self.levels)

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Say so when it will take long."""
        n_lams = len(PAPER_LAMS) if self.lam is None else 1
        seconds = rankrc_seconds(
            size, n_landmarks(size.n_rare), terms.folds * n_lams + terms.folds, terms.memory
        )
        if seconds < LONG_SECONDS:
            return ""
        return (
            f"OrdinalRankRC is likely to take {duration_text(seconds)} on these {size.n_rows:,} "
            "rows (a rough estimate). A sample of the rows of the majority level takes less, and "
            "so does a --lam of your own."
        )

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> OrdinalRankRC:
        """Fit with cross-validation where there are rows for it."""
        majority = np.argmax(np.bincount(rows.y, rows.weight))
        n_rare = int((rows.y != majority).sum())
        check_kernel_memory(
            n_rare, rows.X.dtype.itemsize, terms.memory, "rows outside the majority level"
        )
        shared: dict[str, Any] = {
            # Whichever of them these rows have.
            "levels": list(range(rows.n_codes)),
            "landmarks": choose_landmarks(n_rare),
            "random_state": terms.seed,
            "memory": terms.memory,
        }
        if terms.folds < 2:
            notes.append("Too few rows for cross-validation: the thresholds may be far off.")
            if self.lam is None:
                notes.append(f"For the same reason lam was not chosen: {DEFAULT_LAM:g} was taken.")
            model: OrdinalRankRC = rows.fit(OrdinalRankRC(lam=self.lam or DEFAULT_LAM, **shared))
            return model
        # Even one lam is cross-validated: the thresholds need scores of rows held out.
        lams = PAPER_LAMS if self.lam is None else (self.lam,)
        model = rows.fit(OrdinalRankRCCV(lams, cv=terms.folds, **shared)).best_estimator_
        return model

    def as_chosen(self, model: OrdinalRankRC) -> "OrdinalMethod":
        """Return the method with the lam of `model`."""
        return replace(self, lam=float(model.lam))

    def facts(self, model: OrdinalRankRC, terms: Terms) -> dict[str, Any]:
        """Return lam, width, landmarks, thresholds and how the solver ended."""
        return {
            "lam": float(model.lam),
            "lam_chosen_by_cross_validation": self.lam is None and terms.folds >= 2,
            "width": float(model.width_),
            "n_landmarks": int(model.coef_.shape[0]),
            "thresholds": [float(threshold) for threshold in model.thresholds_],
            "solver": {"status": model.status_, "iterations": int(model.n_iter_)},
        }

    def summary(self, model: OrdinalRankRC, terms: Terms) -> list[str]:
        """Return the lines on landmarks and lam."""
        return [
            f"Landmarks: {model.coef_.shape[0]:,} rows carry the model",
            f"Regulariser lam = {model.lam:.4g} (2^{log2(model.lam):.4g}), "
            f"{how_chosen(self.lam, terms)}",
        ]

    def lighten(self, model: OrdinalRankRC) -> None:
        """Drop the whitener: only `transform` needs it, and it would be most of the file."""
        del model.whitener_
