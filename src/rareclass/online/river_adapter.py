"""The way from an online learner to River, which is imported only when it is asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rareclass.labels.two_classes import two_labels

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker
    from rareclass.online.river_classifier import RiverClassifier


def as_river(
    model: "OnlineRanker", classes: Sequence[Any] = (False, True), seed: int | None = None
) -> "RiverClassifier":
    """Make a River classifier that learns as `model` does, from rows that are dicts.

    It goes wherever River takes a classifier: pipelines, `progressive_val_score`, mini-batches.

    Parameters
    ----------
    model : OnlineRanker
        A learner, e.g. ``CBR()``. Only its parameters are taken: it stays as it is, and the
        classifier begins with nothing learned.
    classes : sequence of two labels
        The labels that will come. The rare one is the model's ``pos_label``, by default the one
        that sorts last.
    seed : int or None
        In place of the model's ``random_state``.

    Returns
    -------
    RiverClassifier
        ``learn_one``, ``predict_proba_one``, ``predict_one`` and ``score_one`` (the raw score),
        and the same for tables of rows.

    Raises
    ------
    ImportError
        Where River is not installed.
    TypeError
        When `model` is not an online learner.
    ValueError
        On a parameter out of range, or other than two classes.

    Examples
    --------
    >>> from rareclass.online import CBR, as_river
    >>> ranker = as_river(CBR())
    >>> for amount, night, fraud in [(9, "no", False), (80, "yes", True), (7, "no", False)]:
    ...     ranker.learn_one({"amount": amount / 10, "night": night}, fraud)
    >>> ranker.predict_one({"amount": 7.0, "night": "yes", "never seen": 3})
    True
    >>> sorted(ranker.weights)
    ['amount', 'night=no', 'night=yes']
    """
    try:
        from rareclass.online.river_classifier import RiverClassifier
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "river":
            raise
        raise ImportError("River is not installed. Install it: pip install river") from error
    two_labels(classes)  # says what is wrong with them
    return RiverClassifier(model, tuple(classes), seed)
