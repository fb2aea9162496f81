"""Texts to numbers: the main directions of their letter groups."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

Floats = NDArray[np.float64]

COMPONENTS = 30
_LETTER_GROUPS = (3, 4)
_BUCKETS = 1 << 15
# Directions are found on so many texts.
_MOST_TEXTS = 20_000


class TextComponents(BaseEstimator):
    """Turns texts into 30 numbers, the main directions of their groups of 3 and 4 letters.

    Groups are counted in 32,768 buckets, weighted by how few texts have them (tf-idf), and rows
    brought to unit length, so that no text lies farther out than another; a truncated singular
    value decomposition (section 18 of Manning, Raghavan and Schuetze, 2008) keeps 30 directions.

    Attributes
    ----------
    idf_ : ndarray of shape (n_buckets,)
    directions_ : ndarray of float32 of shape (n_components, n_buckets)

    Notes
    -----
    Time: proportional to the letters; memory: 4 MB for the directions.
    """

    def fit(self, texts: NDArray[np.object_], weight: Floats) -> "TextComponents":
        """Learn from distinct texts, each of a weight above 0."""
        counts = _letter_groups(texts)
        met = (counts > 0).astype(np.float64)
        self.idf_ = np.log((1 + weight.sum()) / (1 + weight @ met)) + 1
        rows = slice(None, None, -(-len(texts) // _MOST_TEXTS))
        from sklearn.decomposition import TruncatedSVD

        scaled = sparse.diags(np.sqrt(weight[rows])) @ self._weighted(counts[rows])
        n_components = min(COMPONENTS, scaled.shape[0])
        svd = TruncatedSVD(n_components, random_state=0).fit(scaled)
        self.directions_ = svd.components_.astype(np.float32)
        return self

    def transform(self, texts: NDArray[np.object_]) -> Floats:
        """(n_texts, n_components); a text without letters is all zeros."""
        if not len(texts):
            return np.empty((0, len(self.directions_)))
        return np.asarray(self._weighted(_letter_groups(texts)) @ self.directions_.T, np.float64)

    def _weighted(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        from sklearn.preprocessing import normalize

        return normalize(counts @ sparse.diags(self.idf_))


def _letter_groups(texts: NDArray[np.object_]) -> sparse.csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=_LETTER_GROUPS,
        n_features=_BUCKETS,
        alternate_sign=False,
        norm=None,
    )
    return vectorizer.transform(texts)
