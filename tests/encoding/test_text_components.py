"""Texts by their letter groups: against scikit-learn's tf-idf, and copies against weights."""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from rareclass.encoding import column_values as text_components
from rareclass.encoding.column_values import TextComponents

RNG = np.random.default_rng(0)
WORDS = ["the", "card", "was", "lost", "at", "night", "and", "paid", "online", "by", "someone"]
TEXTS = np.array([" ".join(RNG.choice(WORDS, 6)) for _ in range(80)], dtype=object)


def test_the_cosine_of_two_texts_is_kept():
    """With few texts 30 directions keep nearly all: inner products are those of tf-idf."""
    components = TextComponents().fit(TEXTS[:30], np.ones(30))
    counts = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 4), n_features=1 << 15, alternate_sign=False, norm=None
    ).transform(TEXTS[:30])
    tfidf = TfidfTransformer().fit_transform(counts)
    found = components.transform(TEXTS[:30])
    np.testing.assert_allclose(found @ found.T, (tfidf @ tfidf.T).toarray(), atol=1e-3)
    assert (np.linalg.norm(components.transform(TEXTS), axis=1) <= 1 + 1e-5).all()


def test_a_weight_is_so_many_copies(monkeypatch):
    monkeypatch.setattr(text_components, "COMPONENTS", 3)
    weight = np.where(np.arange(len(TEXTS)) % 9, 1, 30)
    copies = np.repeat(TEXTS, weight)
    weighted = TextComponents().fit(TEXTS, weight.astype(float))
    repeated = TextComponents().fit(copies, np.ones(len(copies)))
    a, b = (each.transform(TEXTS) for each in (weighted, repeated))
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-3)


def test_texts_of_nothing_known():
    components = TextComponents().fit(TEXTS, np.ones(len(TEXTS)))
    found = components.transform(np.array(["", "zzzz qqqq"], dtype=object))
    np.testing.assert_array_equal(found[0], 0)
    assert components.transform(np.array([], dtype=object)).shape == (0, found.shape[1])
