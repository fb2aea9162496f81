"""What displays of a ranking share: made from an estimator or from scores, drawn by `plot`."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rarity_scores import scores_inliers_high
from rareclass.labels.two_classes import read_labels
from rareclass.report.displays.look import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class RankingDisplay:
    """A plot of scores beside classes, in the convention of scikit-learn's displays.

    Made by `from_estimator` or `from_predictions`, which also draw. What is drawn is in the
    attributes; `plot` draws it again, on any axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.
    """

    ax_: "Axes"
    figure_: "Figure"
    of_probabilities: ClassVar[bool] = False  # whether it is of probabilities, not scores

    @classmethod
    @abstractmethod
    def _of(
        cls,
        rare: NDArray[np.bool_],
        scores: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        name: str | None,
        **options: Any,
    ) -> Self:
        """Sum up the rows."""

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw scores of rows with known classes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Two classes.
        y_score : array-like of shape (n,)
            Higher means rarer. Probabilities of the rare class where the plot is of these.
        sample_weight : array-like of shape (n,), optional
            Copies that each row stands for.
        pos_label : label, optional
            The rare class; by default the class of less weight.
        name : str, optional
            Of the ranking, in the legend.
        ax : matplotlib.axes.Axes, optional
            By default that of a new figure.
        **options
            Of the display: parameters that its class names.

        Returns
        -------
        RankingDisplay

        Raises
        ------
        ValueError
            On one class, more than two, and scores that are NaN or of another number than classes.
        ImportError
            Without matplotlib.
        """
        scores = np.asarray(y_score, dtype=np.float64)
        labels = read_labels(y_true, sample_weight, pos_label, len(scores))
        rare = np.zeros(len(scores), dtype=bool)
        rare[labels.rare] = True
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return cls._of(rare, scores, weight, name, **options).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the scores that a fitted estimator gives to X.

        They are its ``score_samples``; without one its ``decision_function``, or the probability of
        the rare class. Plots of probabilities take ``predict_proba``.

        Parameters
        ----------
        estimator : fitted estimator
        X : rows as it takes them
            That it did not learn from.
        y, sample_weight, pos_label, name, ax, **options
            As for `from_predictions`; `name` is that of the estimator's class by default, and
            `pos_label` its ``pos_label_`` where it has one.

        Returns
        -------
        RankingDisplay

        Raises
        ------
        ValueError
            As `from_predictions`; where the estimator has no scores.
        """
        if pos_label is None:
            pos_label = getattr(estimator, "pos_label_", None)
        scores = _scores(estimator, X, y, pos_label, cls.of_probabilities)
        return cls.from_predictions(
            y,
            scores,
            sample_weight=sample_weight,
            pos_label=pos_label,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **options,
        )

    @abstractmethod
    def _draw(self, ax: "Axes", **style: Any) -> None:
        """Draw it on axes."""

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default that of a new figure.
        **style
            Such as ``color`` and ``linestyle`` of the main line.

        Returns
        -------
        RankingDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.get_figure()  # type: ignore[assignment]
        self._draw(self.ax_, **style)
        return self


def _scores(
    estimator: Any, X: Any, y: Any, pos_label: Any, probabilities: bool
) -> NDArray[np.float64]:
    """Scores that are higher for the rare class."""
    if not probabilities and hasattr(estimator, "score_samples"):
        scores = np.asarray(estimator.score_samples(X), dtype=np.float64)
        return -scores if scores_inliers_high(estimator) else scores
    classes = list(getattr(estimator, "classes_", ()))
    if len(classes) != 2:
        raise ValueError(f"{type(estimator).__name__} has no scores of two classes.")
    rare = classes.index(_rare_label(y) if pos_label is None else pos_label)
    if not probabilities and hasattr(estimator, "decision_function"):
        decision = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return decision if rare == 1 else -decision
    if not hasattr(estimator, "predict_proba"):
        what = "probabilities" if probabilities else "scores"
        raise ValueError(f"{type(estimator).__name__} has no {what}.")
    return np.asarray(estimator.predict_proba(X)[:, rare], dtype=np.float64)


def _rare_label(y: Any) -> Any:
    column = np.asarray(y)
    return read_labels(column, None, None, len(column)).pos_label
