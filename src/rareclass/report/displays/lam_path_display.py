"""What cross-validation found along the path of regularisations."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.report.displays.look import BAND, BLUE, INK, VERMILLION, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LamPathDisplay:
    """The mean score of the folds against lam, with one standard deviation to each side.

    Parameters
    ----------
    lams : array-like of shape (n_lams,)
    scores : array-like of shape (n_folds, n_lams)
        Of each fold at each lam; NaN where there is none.
    best_lam : float, optional
        The one that was chosen: a line.
    n_landmarks : array-like of shape (n_lams,), optional
        Landmarks in use at each, drawn against an axis of their own.
    scoring : str, default="score"
        What the scores are.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRCCV
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> model = RankRCCV(lams=[1.0, 0.1, 0.01], cv=3).fit(X, y)
    >>> display = LamPathDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel(), display.scores.shape
    ('lam (from strong to weak regularisation)', (3, 3))
    """

    ax_: "Axes"
    figure_: "Figure"

    def __init__(
        self,
        lams: ArrayLike,
        scores: ArrayLike,
        *,
        best_lam: float | None = None,
        n_landmarks: ArrayLike | None = None,
        scoring: str = "score",
    ) -> None:
        self.lams, self.scores = np.asarray(lams, float), np.atleast_2d(np.asarray(scores, float))
        self.best_lam, self.scoring = best_lam, scoring
        self.n_landmarks = None if n_landmarks is None else np.asarray(n_landmarks, float)

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None) -> Self:
        """Draw the path of a fitted `RankRCCV` or `OrdinalRankRCCV`: of the loss that was chosen.

        Raises `ValueError` for an estimator without one, `ImportError` without matplotlib.
        """
        found = getattr(search, "cv_results_", None)
        if found is None or "lam" not in found:
            raise ValueError(
                f"{type(search).__name__} has no path of lam: fit RankRCCV or OrdinalRankRCCV."
            )
        chosen = np.ones(len(found["lam"]), dtype=bool)
        if "loss" in found:
            chosen = np.array([each == found["loss"][search.best_index_] for each in found["loss"]])
        names = sorted(name for name in found if name.startswith("split"))
        scoring = search.scoring if isinstance(search.scoring, str) else "score"
        landmarks = found.get("mean_n_landmarks")
        sparse = getattr(search, "penalty", None) == "l1" and landmarks is not None
        return cls(
            np.asarray(found["lam"])[chosen],
            np.array([np.asarray(found[name])[chosen] for name in names]),
            best_lam=search.best_lam_,
            n_landmarks=np.asarray(landmarks)[chosen] if sparse else None,
            scoring=scoring.replace("roc_auc", "AUC").replace("_", " "),
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw it on axes, by default those of a new figure of pyplot."""
        self.ax_ = ax = new_axes(ax)
        self.figure_ = ax.get_figure()
        order = np.argsort(-self.lams, kind="stable")
        lams, scores = self.lams[order], self.scores[:, order]
        mean, spread = np.nanmean(scores, axis=0), np.nanstd(scores, axis=0)
        ax.fill_between(lams, mean - spread, mean + spread, color=BLUE, alpha=BAND, linewidth=0)
        n_folds = len(scores)
        ax.plot(lams, mean, color=BLUE, marker="o", markersize=4, label=f"mean of {n_folds} folds")
        if self.best_lam is not None:
            label = f"chosen: {self.best_lam:.3g}"
            ax.axvline(self.best_lam, color=INK, linestyle=":", linewidth=1.3, label=label)
        ax.set_xscale("log", base=2)
        ax.invert_xaxis()
        ax.set_xlabel("lam (from strong to weak regularisation)")
        ax.set_ylabel(f"{self.scoring} on held-out rows")
        if self.n_landmarks is not None:
            beside = ax.twinx()
            beside.plot(lams, self.n_landmarks[order], color=VERMILLION, linestyle="--")
            beside.set_ylabel("landmarks in use (dashed)")
        ax.legend()
        return self
