"""What a method is given, and what it gives back."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.paper_tables.protocol import LAMS


class Chosen(NamedTuple):
    """A method with its parameter chosen, fitted.

    Attributes
    ----------
    scores : callable
        Rows to one score each; higher is a higher level.
    parameter : str
        What was chosen.
    choice_seconds, fit_seconds : float
        CPU time to choose, and to fit with that choice.
    size : int or None
        Rows that carry the model: landmarks, support vectors, neighbours; None for the others.
    stopped : int
        Fits that reached their iteration cap.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    parameter: str
    choice_seconds: float
    fit_seconds: float
    size: int | None
    stopped: int = 0


class Task(NamedTuple):
    """Rows to learn from and to choose on, standardised.

    Attributes
    ----------
    X, y : ndarray
        All rows that are not test rows.
    fitting, validation : ndarray of int
        Candidates learn from the first and are judged on the second.
    final : ndarray of int
        Rows that the chosen one learns from.
    seed : int
    landmarks : int or None
        At most this many; None for no limit.
    lams : sequence of float
        What kernel rankers choose lam from.
    """

    X: np.ndarray
    y: np.ndarray
    fitting: np.ndarray
    validation: np.ndarray
    final: np.ndarray
    seed: int
    landmarks: int | None = None
    lams: Sequence[float] = tuple(LAMS)
