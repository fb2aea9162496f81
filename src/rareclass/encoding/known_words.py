"""The words of a column that training knew, and where among them a word stands."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


class KnownWords(BaseEstimator):
    """Words in an order, held as two arrays so that a model file of many words stays small.

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
    >>> known.positions(np.array(["blue", "green"], dtype=object)).tolist()
    [1, -1]
    >>> known.word(0), len(known)
    ('red', 2)
    """

    def fit(self, words: Sequence[str] | NDArray[np.object_]) -> "KnownWords":
        """Remember distinct words in this order."""
        written = [word.encode() for word in words]
        self.text_ = np.frombuffer(b"".join(written), np.uint8).copy()
        self.ends_ = np.cumsum([0, *map(len, written)], dtype=np.int64)
        return self

    def __len__(self) -> int:
        """How many words."""
        return len(self.ends_) - 1

    def word(self, position: int) -> str:
        """The word at a position."""
        begin, end = self.ends_[position : position + 2]
        return self.text_[begin:end].tobytes().decode()

    def positions(self, words: NDArray[np.object_]) -> NDArray[np.int32]:
        """Where each word stands, -1 for one that is not known; time: one hash a word."""
        buffers = [None, pa.py_buffer(self.ends_), pa.py_buffer(self.text_)]
        known = pa.Array.from_buffers(pa.large_string(), len(self), buffers)
        found = pc.index_in(pa.array(words, pa.large_string()), value_set=known)
        return found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
