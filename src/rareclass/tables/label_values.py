"""Labels as a text file has them: how many there may be, and which of them are numbers."""

import numpy as np
import pyarrow as pa

# A column with more values than this is no target.
MOST_LABELS = 10_000


def read_labels(texts: list[str]) -> np.ndarray:
    """Different labels as whole numbers, numbers or words, whichever all of them are.

    Text is a number only where the number is written like that: 01 and 1_0 are words, and so is
    what no float64 holds to the last digit. Two texts never become one label.

    Examples
    --------
    >>> read_labels(["0", "1"]), read_labels(["0.0", "1"])
    (array([0, 1]), array([0., 1.]))
    >>> read_labels(["01", "1"]).tolist()
    ['01', '1']
    """
    cells = pa.array(texts, pa.string())
    for kind in (pa.int64(), pa.float64()):
        try:
            cast = cells.cast(kind)
        except pa.ArrowInvalid:
            continue
        values: np.ndarray = cast.to_numpy()
        # 1 is written "1" by pyarrow and, as a float, "1.0" by Python.
        spellings = zip(texts, cast.cast(pa.string()).to_pylist(), values.tolist(), strict=True)
        if (
            all(text in (short, repr(value)) for text, short, value in spellings)
            and np.isfinite(values).all()
            and len(np.unique(values)) == len(texts)
        ):
            return values
    return np.array(texts, dtype=object)
