"""What the two classes of a stream are called, for whoever reads about them."""

from rareclass.tables.batch import Batch
from rareclass.tables.raw_cells import read_rare_or_rest

_OTHER_LABEL = {"0": "1", "-1": "1", "false": "true", "no": "yes"}


def label_names(first: Batch, target: str, positive: str | None) -> dict[str, str]:
    """Return what the rare class and the rest are called in the first rows of a stream.

    Examples
    --------
    >>> import numpy as np
    >>> cells = {"y": np.array(["no", None], object)}
    >>> label_names(Batch(cells, np.array([2, 3]), "", [], 2, {}), "y", None)
    {'rare': 'yes', 'rest': 'no'}
    """
    labels, _ = read_rare_or_rest(first.columns[target], positive)
    names: dict[float, str] = {}
    for label, cell in zip(labels.tolist(), first.columns[target].tolist(), strict=True):
        if label == label:
            names.setdefault(label, str(cell).strip())
    rest = names.get(0.0, "0" if positive is None else "rest")
    rare = positive if positive is not None else names.get(1.0)
    return {"rare": rare or _OTHER_LABEL.get(rest.lower(), "1"), "rest": rest}
