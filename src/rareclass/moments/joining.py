"""Rows and models that come together: whether they may, and rows on rows."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from rareclass.labels.two_classes import plain
from rareclass.moments.moments import Moments
from rareclass.moments.summing import Wanted


def check_alike(a: BaseEstimator, b: BaseEstimator) -> None:
    """Refuse to join models that differ in more than the rows that they saw.

    Raises `ValueError`, naming the parameter, or what else differs.
    """
    for name, value in a.get_params().items():
        other = b.get_params()[name]
        if name not in ("n_jobs", "C", "tol", "max_iter") and value != other:
            raise ValueError(f"models with {name}={value!r} and {name}={other!r} do not merge.")
    for name, what in (("classes_", "classes"), ("feature_names_in_", "columns")):
        one, two = (np.asarray(getattr(model, name, [])) for model in (a, b))
        if not np.array_equal(one, two):
            raise ValueError(f"models with the {what} {one} and {two} do not merge.")
    if a.n_features_in_ != b.n_features_in_:
        raise ValueError(
            f"models with {a.n_features_in_} and {b.n_features_in_} features do not merge."
        )
    if a.pos_label_ != b.pos_label_:
        raise ValueError(
            f"models with the rare classes {plain(a.pos_label_)!r} and {plain(b.pos_label_)!r} do "
            "not merge."
        )
    if not np.array_equal(a.moments_.probes, b.moments_.probes):
        raise ValueError(
            "models whose random_state gave different sketches do not merge: pass the same number "
            "as random_state to both."
        )


def stacked(above: Any, below: Any) -> Any:
    """Rows on rows, in the form of those above; nothing keeps the form of what comes."""
    if not above.shape[0]:
        return below
    if not below.shape[0]:
        return above
    if sparse.issparse(above):
        return sparse.vstack([above, below], format="csr")
    return np.vstack([above, below.toarray() if sparse.issparse(below) else below])


def check_kept(moments: Moments, wanted: Wanted) -> None:
    """The covariance may have been set to another since the first rows."""
    kept = bool(moments.scatter.size), bool(moments.third.size), moments.sketch.shape[1]
    n_probes = min(wanted.n_probes, len(moments.mean))
    if kept != (wanted.scatter, wanted.fourth, n_probes):
        raise ValueError(
            "covariance= or n_factors= was changed: the moments that were summed so far are not "
            "those that it needs. Set it back, or start again with a clone."
        )


def check_both(moments: Moments, rare_weight: np.ndarray) -> None:
    """Refuse to solve before a row of either class has come."""
    if not len(rare_weight):
        raise NotFittedError("No rare row was learned yet: there is nothing to find.")
    if not moments.weight:
        raise NotFittedError("No majority row was learned yet: it has no mean and no covariance.")
