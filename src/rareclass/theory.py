r"""How far a model on a subset of kernel functions can be from the model on all of them.

The bounds of Tayal, Coleman and Li (2014). Everywhere, m rows have feature maps :math:`\phi(x_i)`
of a kernel k with :math:`k(x, x) \le \kappa`; R is the subset of rows that carry the model, and
:math:`\phi_R(x)` is :math:`\phi(x)` projected on the span of :math:`\phi(x_i), i \in R`. The model
on R is the model with the map :math:`\phi_R` (Theorem 2), and the model with the Nyström matrix
:math:`K' = K_{\cdot R} K_{RR}^\dagger K_{R \cdot}` in place of K (Proposition 5): for every loss.

The bounds hold for the worst possible data, so they are large: scores themselves are at most
:math:`2 \kappa / \lambda`. They tell which rows to put into R, and how lam and |R| trade.

References
----------
.. [1] Tayal, Coleman, Li, "Bounding the Difference Between RankRC and RankSVM and Application to
   Multi-Level Rare Class Kernel Ranking", 2014.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

# Residual norms come from differences of kernel values: rounding may take them past their bound.
_ROUNDING = 1e-6


def subset_bound(
    rare: ArrayLike,
    majority: ArrayLike,
    lam: ArrayLike,
    *,
    kappa: float = 1.0,
    slope: float = 1.0,
    residuals: bool = False,
) -> Any:
    r"""Theorem 3 and Corollary 4: RankSVM against the same machine on a subset R of the rows.

    For every x with :math:`k(x, x) \le \kappa`,

    .. math::

        |f_R(x) - f(x)| \le \frac{2 \kappa}{\lambda} \Bigl(
        \frac{1}{W_+} \sum_{i \in P, i \notin R} w_i +
        \frac{1}{W_-} \sum_{j \in N, j \notin R} w_j \Bigr)^{1/2}

    where f minimises the weighted mean of :math:`\ell(f(x_i) - f(x_j))` over the pairs of a rare
    and a majority row plus :math:`(\lambda / 2) \|f\|^2`, and :math:`f_R` minimises the same over
    the span of R. Each rare row taken into R gains :math:`w_i / W_+`, each majority row
    :math:`w_j / W_-`, far less: the rare rows go first.

    Parameters
    ----------
    rare, majority : float or array-like
        Share of the weight of either class in rows outside R, in [0, 1]: for unweighted rows
        their number divided by the number of the class. A row equal to one of R is in R.
        With ``residuals=True`` the weighted means over either class of
        :math:`\|\phi(x_i) - \phi_R(x_i)\|`, from 0 to :math:`\sqrt\kappa`.
    lam : float or array-like
        Strength of the regulariser. Larger is a tighter bound.
    kappa : float, default=1
        Largest k(x, x); 1 for the Gaussian and the Laplace kernel.
    slope : float, default=1
        The loss is convex and its slope is never steeper than this (L below): 1 for the hinge,
        the smoothed hinge and the logistic loss.
    residuals : bool, default=False
        Whether `rare` and `majority` are means of residual norms. The bound is then

        .. math::

            \frac{L \kappa^{3/4}}{\lambda} \sqrt{2 (d_+ + d_-)}

        which is smaller by at least :math:`\sqrt 2`; see the notes.

    Returns
    -------
    float or ndarray
        In units of the score; of the common shape of the arguments.

    Raises
    ------
    ValueError
        On a parameter outside its range.

    Notes
    -----
    The paper's steps with weights and a slope L. Its inequality before (37) reads
    :math:`\lambda \|w_R - w\|^2 \le \{R_\phi(w_R) - R_{\phi_R}(w_R)\} + \{R_{\phi_R}(w) -
    R_\phi(w)\}`. The paper bounds both braces and gets (37); but :math:`w_R` lies in the span of R,
    so that :math:`w_R \cdot \phi = w_R \cdot \phi_R` (Lemma 1) and the first brace is zero. The
    second is at most :math:`L \|w\| (d_+ + d_-)`, with :math:`d_\pm` the mean residual norms, as in
    (37), and :math:`\|w\| \le 2 L \sqrt\kappa / \lambda`. So :math:`\|w_R - w\|^2 \le 2 L^2
    \sqrt\kappa (d_+ + d_-) / \lambda^2`, and the scores differ by at most :math:`\sqrt\kappa` times
    the root of that. It is attained: R empty, two rows, x = 1 rare and x = -1 majority, linear
    kernel, lam of at least 4. Residual norms of at most :math:`\sqrt\kappa` outside R
    and 0 inside give the first formula, less a factor :math:`\sqrt 2` that is left as printed.

    Examples
    --------
    Rare rows only, then also half of the majority:

    >>> subset_bound(0.0, 1.0, lam=0.5)
    4.0
    >>> round(subset_bound(0.0, 0.5, lam=0.5), 3)
    2.828

    A tenth of 50 rare rows, or as many rows of 5,000 majority ones, left out:

    >>> subset_bound([5 / 50, 0.0], [0.0, 5 / 5000], lam=1.0).round(3).tolist()
    [0.632, 0.063]
    """
    _check_positive(lam=lam, kappa=kappa, slope=slope)
    most = np.sqrt(kappa) if residuals else 1.0
    outside = _within("rare", rare, most, residuals) + _within(
        "majority", majority, most, residuals
    )
    if residuals:
        return _plain(slope * kappa**0.75 / np.asarray(lam) * np.sqrt(2.0 * outside))
    return _plain(2.0 * slope * kappa / np.asarray(lam) * np.sqrt(outside))


def nystrom_svm_bound(
    outside: ArrayLike,
    lam: ArrayLike,
    *,
    kappa: float = 1.0,
    slope: float = 1.0,
    residuals: bool = False,
) -> Any:
    r"""Theorem 6: a kernel SVM against the one with a Nyström approximation of its kernel.

    For every x with :math:`k(x, x) \le \kappa`,

    .. math::

        |f_{K'}(x) - f_K(x)| \le \frac{\sqrt 2 \kappa}{\lambda} \sqrt{1 - \frac{|R|}{m}}

    where f minimises the mean of :math:`\ell(y_i f(x_i))` over the rows plus
    :math:`(\lambda / 2) \|f\|^2`, without an intercept, and K' is the Nyström approximation of K
    by its columns R.

    Parameters
    ----------
    outside : float or array-like
        Share of the rows (of their weight, where rows are weighted) outside R, ``1 - |R| / m``,
        in [0, 1]. With ``residuals=True`` the weighted mean of
        :math:`\|\phi(x_i) - \phi_R(x_i)\|`, from 0 to :math:`\sqrt\kappa`.
    lam : float or array-like
        Strength of the regulariser; ``1 / (C m)`` in terms of scikit-learn's C.
    kappa, slope : float, default=1
        As in `subset_bound`.
    residuals : bool, default=False
        Whether `outside` is the mean d of residual norms: the bound is then
        :math:`L \kappa^{3/4} \sqrt d / \lambda`, smaller by at least :math:`\sqrt 2`, by the
        steps given in `subset_bound`.

    Returns
    -------
    float or ndarray
        In units of the score.

    Raises
    ------
    ValueError
        On a parameter outside its range.

    Examples
    --------
    >>> round(nystrom_svm_bound(0.5, lam=0.1), 6)
    10.0
    """
    _check_positive(lam=lam, kappa=kappa, slope=slope)
    share = _within("outside", outside, np.sqrt(kappa) if residuals else 1.0, residuals)
    if residuals:
        return _plain(slope * kappa**0.75 / np.asarray(lam) * np.sqrt(share))
    return _plain(np.sqrt(2.0) * slope * kappa / np.asarray(lam) * np.sqrt(share))


def kernel_perturbation_bound(
    distance: ArrayLike,
    lam: ArrayLike,
    *,
    kappa: float = 1.0,
    slope: float = 1.0,
    as_printed: bool = False,
) -> Any:
    r"""Theorem 7: RankSVM with a kernel matrix K against RankSVM with another one, K'.

    .. math::

        |f_{K'}(x) - f_K(x)| \le \frac{2 \sqrt 2 \kappa^{3/4}}{\lambda} \delta^{1/4}
        \Bigl[1 + \Bigl(\frac{\delta}{4 \kappa}\Bigr)^{1/4}\Bigr],
        \qquad \delta = \|K' - K\|_2

    With the Nyström matrix of a subset R as K' it bounds what `subset_bound` does, without
    knowing the classes.

    Parameters
    ----------
    distance : float or array-like
        Spectral norm of K' - K, at or above 0, both matrices positive semi-definite. They are over
        the training rows and over every row x that the bound is wanted for: it is the norm of
        the training rows alone only where x is one of them.
    lam : float or array-like
        Strength of the regulariser.
    kappa, slope : float, default=1
        As in `subset_bound`; kappa is the largest entry on the diagonals of K and K'.
    as_printed : bool, default=False
        The formula as the paper prints it, (46), with :math:`\delta^{1/2}` before the bracket. That
        is no bound: see the notes.

    Returns
    -------
    float or ndarray
        In units of the score.

    Raises
    ------
    ValueError
        On a parameter outside its range.

    Notes
    -----
    The paper's own steps give the power 1/4. With :math:`\phi(x_i) = K^{1/2} e_i`, feature maps
    differ by at most :math:`\|K^{1/2} - K'^{1/2}\| \le \delta^{1/2}`; so, as in (37), with
    :math:`\|w\|, \|w'\| \le 2 L \sqrt\kappa / \lambda`,
    :math:`\|w' - w\|^2 \le (L / \lambda)(4 L \sqrt\kappa / \lambda)(2 \delta^{1/2})`, and
    :math:`|w' \cdot \phi' - w \cdot \phi| \le \sqrt\kappa \|w' - w\| + \|w'\| \delta^{1/2}`. That
    is the formula above, times L, and twice the SVM's bound of Cortes, Mohri and Talwalkar (2010),
    as the paper says. The printed power cannot be right: scores do not change when K, K', kappa
    and lam are all multiplied by c, and the printed right-hand side then goes as
    :math:`c^{1/4}`, to zero.

    References
    ----------
    .. [1] Cortes, Mohri, Talwalkar, "On the Impact of Kernel Approximation on Learning Accuracy",
       AISTATS 2010.

    Examples
    --------
    >>> round(kernel_perturbation_bound(4.0, lam=2.0), 3)
    4.0
    """
    _check_positive(lam=lam, kappa=kappa, slope=slope)
    delta = np.asarray(distance, dtype=np.float64)
    if not ((delta >= 0.0) & np.isfinite(delta)).all():
        raise ValueError(
            f"distance={distance!r} must be a spectral norm, at or above 0: "
            "numpy.linalg.norm(K2 - K, 2)."
        )
    power = 0.5 if as_printed else 0.25
    factor = 2.0 * np.sqrt(2.0) * slope * kappa**0.75 / np.asarray(lam)
    return _plain(factor * delta**power * (1.0 + (delta / (4.0 * kappa)) ** 0.25))


def _check_positive(**parameters: Any) -> None:
    for name, value in parameters.items():
        number = np.asarray(value, dtype=np.float64)
        if not ((number > 0.0) & np.isfinite(number)).all():
            raise ValueError(f"{name}={value!r} must be above 0 and finite.")


def _within(name: str, value: ArrayLike, most: float, residuals: bool) -> np.ndarray:
    number = np.asarray(value, dtype=np.float64)
    if not ((number >= 0.0) & (number <= most * (1.0 + _ROUNDING))).all():
        what = (
            f"a mean of residual norms, between 0 and sqrt(kappa) = {most:g}. Raise kappa to the "
            "largest k(x, x)"
            if residuals
            else "a share, between 0 and 1. Divide the weight of the rows outside R by the weight "
            "of all of them"
        )
        raise ValueError(f"{name}={value!r} must be {what}.")
    return np.minimum(number, most)


def _plain(bound: Any) -> Any:
    return float(bound) if np.ndim(bound) == 0 else bound


__all__ = ["kernel_perturbation_bound", "nystrom_svm_bound", "subset_bound"]
