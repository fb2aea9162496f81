"""The words of a column that training knew, and which level a word is."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


class KnownWords(BaseEstimator):
    """Words in an order, held as two arrays so that a model file of many words stays small.

    Their positions are levels 0 to k - 1; level k is missing, level k + 1 every other word.

    Attributes
    ----------
    text_ : ndarray of uint8
        All words in UTF-8, one after the other.
    ends_ : ndarray of int64 of shape (n_words + 1,)
        Word k is ``text_[ends_[k]:ends_[k + 1]]``.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownWords().fit(["red", "blue"])
    >>> known.levels(np.array(["blue", "green"], dtype=object)).tolist()
    [1, 3]
    >>> known.name(0), known.n_known, known.n_levels
    ('red', 2, 4)
    """

    def fit(self, words: Sequence[str] | NDArray[np.object_]) -> "KnownWords":
        """Remember distinct words in this order."""
        written = [word.encode() for word in words]
        self.text_ = np.frombuffer(b"".join(written), np.uint8).copy()
        self.ends_ = np.cumsum([0, *map(len, written)], dtype=np.int64)
        return self

    def check_parts(self) -> None:
        """Raise `ValueError` where the ends of words do not lie in the text."""
        ends, text = self.ends_, self.text_
        if ends.dtype != np.int64 or text.dtype != np.uint8 or ends.ndim != 1 or text.ndim != 1:
            raise ValueError("ends_ and text_ are not whole numbers and bytes")
        if not len(ends) or ends[0] != 0 or ends[-1] > len(text) or (np.diff(ends) < 0).any():
            raise ValueError("ends_ point outside of text_")
        text.tobytes().decode()

    @property
    def n_known(self) -> int:
        """How many words."""
        return len(self.ends_) - 1

    @property
    def n_levels(self) -> int:
        """How many levels."""
        return self.n_known + 2

    def name(self, level: int) -> str:
        """The word of a level, or what the level is."""
        if level >= self.n_known:
            return "missing" if level == self.n_known else "unseen"
        begin, end = self.ends_[level : level + 2]
        return self.text_[begin:end].tobytes().decode()

    def levels(self, words: NDArray[np.object_]) -> NDArray[np.int32]:
        """The level of each word; time: one hash a word."""
        buffers = [None, pa.py_buffer(self.ends_), pa.py_buffer(self.text_)]
        known = pa.Array.from_buffers(pa.large_string(), self.n_known, buffers)
        found = pc.index_in(pa.array(words, pa.large_string()), value_set=known)
        return found.fill_null(self.n_known + 1).to_numpy(zero_copy_only=False).astype(np.int32)
