"""One question to every estimator: why does this row score what it scores?"""

from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from rareclass.explain.ball_explanation import explain_ball
from rareclass.explain.explanation import Explanation
from rareclass.explain.features import read_rows
from rareclass.explain.kernel_explanation import explain_kernel
from rareclass.explain.linear_explanation import explain_linear
from rareclass.explain.replacement_explanation import explain_by_replacement
from rareclass.moments.mibc import MIBC
from rareclass.online.ranker import OnlineRanker
from rareclass.ranking.machine import KernelModel


def explain(
    model: Any, X: Any, *, typical: Any = None, groups: Sequence[Any] | None = None
) -> Explanation:
    r"""What each column does to the score of each row of X.

    Kernel machines (`RankRC`, `RankSVM`, `OrdinalRankRC`, `StochasticRankRC`): a
    `KernelExplanation`. Its ``pulls`` :math:`\beta_r k(z_r, x)` add up to the score; contributions
    are :math:`f(x) - f(x_{j \to t_j})`, the change as feature j takes its typical value t, which is
    what a reader can imagine: leaving a feature out of the distance would compare the row with one
    that cannot be. They do not add up, as features work together.

    Linear scores (`MIBC` and the online learners): :math:`w_j (x_j - t_j)`, which with the base
    :math:`w \cdot t` add up to the score.

    `OnlineMixture`: :math:`f(x) - f(x_{j \to t_j})`, as for kernel machines.

    `RareClassifier`: :math:`f(x) - f(x_{c \to t_c})` for a column c of the table, of the whole
    model, with the median for a number, the commonest word for a category, and an empty cell for a
    date or text.

    `RACH` with a round ball of features: :math:`-(x_j - c_j)^2`, which with :math:`R^2` add up to
    the depth.

    Parameters
    ----------
    model : fitted estimator, or a search for one
    X : as for its ``score_samples``
        Few rows: an explanation costs about as much as scoring each row once for each column.
    typical : array-like of shape (n_features,), optional
        A row to compare with, as ``numpy.median(X_train, axis=0)``. By default 0 for every feature,
        the mean of standardised ones; for `MIBC` that still has its moments the majority's mean.
        Not for `RareClassifier`; balls compare with their centre.
    groups : sequence of n_features names, optional
        Features of one name change together, as the indicators of one category. Not for
        `RareClassifier`, whose columns are those of the table.

    Returns
    -------
    Explanation
        Time for kernel machines: O(n n_landmarks n_features).

    Raises
    ------
    TypeError
        For an estimator of another kind.
    ValueError
        On rows that ``score_samples`` refuses, a typical row or groups of another length, and balls
        whose depth is no sum over features.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from rareclass import RankRC
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> model = RankRC().fit(X, y)
    >>> told = explain(model, X[:2])
    >>> bool(abs(told.pulls.sum(axis=1) - model.score_samples(X[:2])).max() < 1e-9)
    True
    >>> [told.columns[k] for k in told.strongest(2)[0]]  # doctest: +SKIP
    ['x5', 'x12']
    """
    from rareclass.hyperball.rach import BallClassifier

    model = getattr(model, "best_estimator_", model)
    if is_rare_classifier(model):
        from rareclass.explain.column_replacement import explain_columns

        if typical is not None or groups is not None:
            raise ValueError("a RareClassifier knows its columns and their typical cells itself.")
        check_is_fitted(model)
        return explain_columns(model, X)
    if not isinstance(model, BallClassifier | KernelModel | MIBC | OnlineRanker):
        raise TypeError(
            f"{type(model).__name__} is not explained: pass a kernel machine, MIBC, an online "
            "learner, a RareClassifier or RACH."
        )
    check_is_fitted(model)
    if typical is None and isinstance(model, MIBC) and hasattr(model, "moments_"):
        typical = model.moments_.mean
    rows = read_rows(model, X, typical, groups)
    if isinstance(model, BallClassifier):
        return explain_ball(model, rows)
    if isinstance(model, KernelModel):
        return explain_kernel(model, rows)
    if isinstance(model, OnlineRanker) and not model._is_linear:
        return explain_by_replacement(model.score_samples, rows)
    return explain_linear(model.coef_, rows)


def is_rare_classifier(model: Any) -> bool:
    """By its name: its members bring trees and more, which others do not need."""
    return any(each.__name__ == "RareClassifier" for each in type(model).__mro__)
