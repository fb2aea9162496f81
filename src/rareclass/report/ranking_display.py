"""Base of the displays of a ranking, made from an estimator or from scores."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rarity_scores import rarity_scores
from rareclass.labels.two_classes import read_labels
from rareclass.report.drawing import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class RankingDisplay:
    """A plot of scores beside classes, in the convention of scikit-learn's displays.

    `from_estimator` and `from_predictions` make and draw it. The attributes hold the numbers that
    are drawn; `plot` draws them again, on any axes.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Set by `plot`.
    figure_ : matplotlib.figure.Figure
        Set by `plot`.
    """

    ax_: "Axes"
    figure_: "Figure"
    of_probabilities: ClassVar[bool] = False  # drawn from probabilities, not scores

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
        """Count the rows."""

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
            Higher means rarer. Probabilities of the rare class where the plot is of probabilities.
        sample_weight : array-like of shape (n,), optional
            Copies that each row stands for.
        pos_label : label, optional
            The rare class; by default the class of less weight.
        name : str, optional
            Name of the ranking in the legend.
        ax : matplotlib.axes.Axes, optional
            By default the axes of a new figure.
        **options
            Parameters that the display's class names.

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

        Scores are the ``score_samples`` of this package's rankers, else the ``decision_function``,
        else the probability of the rare class. Plots of probabilities take ``predict_proba``.

        Parameters
        ----------
        estimator : fitted estimator
        X : rows for the estimator
            Held out of training.
        y, sample_weight, pos_label, name, ax, **options
            As for `from_predictions`; by default `name` is the name of the estimator's class, and
            `pos_label` the estimator's ``pos_label_`` where it has one.

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
        label = _rare_label(y) if pos_label is None else pos_label
        score = _probabilities if cls.of_probabilities else rarity_scores
        scores = score(estimator, X, label)
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
        """Draw on axes."""

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default the axes of a new figure.
        **style
            Such as ``color`` and ``linestyle`` of the main line.

        Returns
        -------
        RankingDisplay
            The same object, with ``ax_`` and ``figure_``.
        """
        self.ax_ = new_axes(ax)
        self.figure_ = self.ax_.get_figure()  # type: ignore[assignment]
        self._draw(self.ax_, **style)
        return self


def _rare_label(y: Any) -> Any:
    column = np.asarray(y)
    return read_labels(column, None, None, len(column)).pos_label


def _probabilities(estimator: Any, X: Any, pos_label: Any) -> NDArray[np.float64]:
    """Probabilities of the rare class."""
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{type(estimator).__name__} has no probabilities.")
    place = list(estimator.classes_).index(pos_label)
    return np.asarray(estimator.predict_proba(X)[:, place], dtype=np.float64)
