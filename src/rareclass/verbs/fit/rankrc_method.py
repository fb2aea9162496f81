"""RankRC as the command line runs it: landmarks, lam, memory, and how long it will take."""

from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

from rareclass.ranking import RankRC, RankRCCV
from rareclass.ranking.rankrc_cv import PAPER_LAMS
from rareclass.verbs.fit.duration import LONG_SECONDS, duration_text, rankrc_seconds
from rareclass.verbs.fit.landmark_choice import check_kernel_memory, choose_landmarks, n_landmarks
from rareclass.verbs.fit.method import EncodedRows, TableSize, Terms, how_chosen
from rareclass.verbs.targets.rare_target import RareTarget, rare_target
from rareclass.verbs.targets.target import FoundLabels

DEFAULT_LAM = 2.0**-8


@dataclass(frozen=True)
class RankRCMethod:
    """A kernel machine on the rare rows; see `rareclass.verbs.fit.method.Method`.

    Attributes
    ----------
    lam : float or None
        Strength of the regulariser; None chooses it by cross-validation.
    """

    name: ClassVar[str] = "rankrc"
    parameter: ClassVar[str] = "lam"

    lam: float | None = None

    def read_target(self, found: FoundLabels, positive: str | None) -> RareTarget:
        """Return one label against the rest."""
        return rare_target(found, positive)

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Say so when it will take long: another method needs one pass of the rows."""
        n_lams = len(PAPER_LAMS) if self.lam is None else 1
        seconds = rankrc_seconds(
            size, n_landmarks(size.n_rare), terms.folds * n_lams + terms.folds, terms.memory
        )
        if seconds < LONG_SECONDS:
            return ""
        return (
            f"RankRC is likely to take {duration_text(seconds)} on these {size.n_rows:,} rows "
            f"(a rough estimate). --method mibc needs one pass of them and one for its "
            "cross-validation: a linear model."
        )

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> RankRC:
        """Fit with cross-validation where there are rows for it."""
        n_rare = int((rows.y == 1).sum())
        check_kernel_memory(
            n_rare,
            rows.X.dtype.itemsize,
            terms.memory,
            instead="give --method mibc, which has no kernel",
        )
        shared: dict[str, Any] = {
            "landmarks": choose_landmarks(n_rare),
            "pos_label": 1,
            "random_state": terms.seed,
            "memory": terms.memory,
        }
        if terms.folds < 2:
            notes.append("Too few rare rows for cross-validation: the threshold may be far off.")
            if self.lam is None:
                notes.append(f"For the same reason lam was not chosen: {DEFAULT_LAM:g} was taken.")
            model: RankRC = rows.fit(RankRC(lam=self.lam or DEFAULT_LAM, **shared))
            return model
        # Even one lam is cross-validated: the threshold needs scores of rows held out.
        lams = PAPER_LAMS if self.lam is None else (self.lam,)
        model = rows.fit(RankRCCV(lams, cv=terms.folds, **shared)).best_estimator_
        return model

    def as_chosen(self, model: RankRC) -> "RankRCMethod":
        """Return the method with the lam of `model`."""
        return replace(self, lam=float(model.lam))

    def facts(self, model: RankRC, terms: Terms) -> dict[str, Any]:
        """Return lam, width, landmarks and how the solver ended."""
        return {
            "lam": float(model.lam),
            "lam_chosen_by_cross_validation": self.lam is None and terms.folds >= 2,
            "width": float(model.width_),
            "n_landmarks": int(model.coef_.shape[0]),
            "threshold": float(model.offset_),
            "solver": {"status": model.status_, "iterations": int(model.n_iter_)},
        }

    def summary(self, model: RankRC, terms: Terms) -> list[str]:
        """Return the lines on landmarks and lam."""
        return [
            f"Landmarks: {model.coef_.shape[0]:,} rows carry the model",
            f"Regulariser lam = {model.lam:.4g} (2^{log2(model.lam):.4g}), "
            f"{how_chosen(self.lam, terms)}",
        ]

    def lighten(self, model: RankRC) -> None:
        """Drop the whitener: only `transform` needs it, and it would be most of the file."""
        del model.whitener_
