"""The problems of the RACH table: one majority class against one rare class, no other rows.

The text of the paper (He, Tong and Carbonell 2010, section VI) names neither the coordinates of its
synthetic set nor the class pairs behind its Figures 2 to 8; those below were fixed before RACH was
run on them. Written "set majority:rare".

- synthetic: 3,000 rows of a standard normal distribution in the plane and, inside it, four shapes
  of 84, 150, 267 and 280 rows: disc, bar, crescent and ring, each spread evenly over its area. One
  problem each. Between a ninth and a fourth of the rows in a shape are of the majority.
- abalone: rings 9, the most frequent, against 4, 5 and 16. glass: type 2, the most frequent,
  against 3, 5 and 7. ecoli: imU against the others, as the file tells no more apart. shuttle:
  radiator flow against bypass and two valve classes, either spelling.
- In place of page-blocks (regions of pages, described by their geometry): segment (regions of
  photographs) and satimage (damp grey soil against the others). In place of yeast, where KEEL's
  sets are usual: yeast_ml8 (genes, label 9 against the others) and vowel0 (KEEL's).
- newsgroups20: pairs of groups from near to far. TF-IDF of words in at least five texts, English
  stop words left out, by truncated SVD to 50 columns, learned on all 18,846 texts without their
  groups; texts have unit length.

Where a class has more rows than `ROWS` has for it, a part is drawn once and for all. Columns are
standardised by all rows of the problem (no label is needed for it), words aside.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from benchmarks.paper_tables.protocol import Rows, Standardiser

SYNTHETIC = "synthetic"
MAJORITY_ROWS = 3000
SHAPES = {"disc": 84, "bar": 150, "crescent": 267, "ring": 280}
SEED = 2010
SVD_COLUMNS = 50
TEXTS = "newsgroups20"


class Pair(NamedTuple):
    """Two classes of a set and the most rows that are taken of each.

    Attributes
    ----------
    majority, rare : tuple of str
        Values of the label column, as text.
    most : tuple of int
        Rows of the majority and of the rare class.
    """

    majority: tuple[str, ...]
    rare: tuple[str, ...]
    most: tuple[int, int] = (2300, 2300)


# The label column of a set; every other column that has to do with labels is named as well.
LABELS = {
    "abalone": ("rings", "target"),
    "ecoli": ("target",),
    "glass": ("glass_type", "target"),
    "segment": ("segment_class", "target"),
    "satimage": ("target",),
    "yeast_ml8": ("target",),
    "vowel0": ("target",),
    "shuttle": ("shuttle_class", "target"),
    TEXTS: ("group",),
}
_REST = Pair(("0",), ("1",))
_RADIATOR = ("Rad Flow", "Radiator Flow")


def _pairs(most: tuple[int, int], *named: str) -> dict[str, Pair]:
    """ "foliage:window" as the two classes."""
    found = {}
    for name in named:
        majority, _, rare = name.partition(":")
        found[name] = Pair((majority,), (rare,), most)
    return found


PAIRS: dict[str, dict[str, Pair]] = {
    "abalone": _pairs((2300, 2300), "9:4", "9:5", "9:16"),
    "ecoli": {"rest:imU": _REST},
    "glass": _pairs((2300, 2300), "2:3", "2:5", "2:7"),
    "segment": _pairs((330, 30), "foliage:window", "cement:foliage"),
    "satimage": {"rest:4": _REST._replace(most=(1850, 150))},
    "yeast_ml8": {"rest:9": _REST},
    "vowel0": {"rest:0": _REST},
    "shuttle": {
        "radiator:bypass": Pair(_RADIATOR, ("Bypass",), (2000, 100)),
        "radiator:fpv open": Pair(
            _RADIATOR, ("Fpv Open", "Flow Proportioning Valve Open"), (2000, 200)
        ),
        "radiator:fpv close": Pair(
            _RADIATOR, ("Fpv Close", "Flow Proportioning Valve Close"), (2000, 200)
        ),
    },
    TEXTS: _pairs(
        (1000, 60),
        "comp.graphics:sci.space",
        "rec.sport.hockey:rec.sport.baseball",
        "soc.religion.christian:talk.religion.misc",
    ),
}
SETS = (SYNTHETIC, *PAIRS)


def is_there(name: str, folder: Path | None) -> bool:
    """Whether a set can be had; the synthetic one always can."""
    return name == SYNTHETIC or (folder is not None and (folder / f"{name}.parquet").is_file())


def problems(name: str) -> list[str]:
    """The problems of a set: "glass 2:3", "glass 2:5", .."""
    return [f"{name} {pair}" for pair in (SHAPES if name == SYNTHETIC else PAIRS[name])]


@lru_cache(maxsize=4)
def load(problem: str, folder: Path | None) -> Rows:
    """The rows of a problem, scaled."""
    name, _, pair = problem.partition(" ")
    if name == SYNTHETIC:
        return _scaled(synthetic(pair))
    assert folder is not None
    X, label = _table(name, folder)
    chosen = PAIRS[name][pair]
    rng = np.random.default_rng(SEED)
    parts = [
        rng.permutation(np.flatnonzero(np.isin(label, values)))[:most]
        for values, most in zip((chosen.majority, chosen.rare), chosen.most, strict=True)
    ]
    rows = np.sort(np.concatenate(parts))
    found = Rows(X[rows], np.isin(label[rows], chosen.rare).astype(np.int64))
    return found if name == TEXTS else _scaled(found)


def synthetic(shape: str) -> Rows:
    """Section VI-A: the same majority rows with each of the shapes, in plain coordinates."""
    majority = np.random.default_rng(SEED).standard_normal((MAJORITY_ROWS, 2))
    rare = _DRAW[shape](SHAPES[shape], np.random.default_rng([SEED, SHAPES[shape]]))
    y = np.repeat([0, 1], [len(majority), len(rare)])
    return Rows(np.vstack([majority, rare]), y)


def _disc(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([0.9, 0.7]) + _arc(n, rng, (0.0, 0.12), 2.0 * np.pi)


def _bar(n: int, rng: np.random.Generator) -> np.ndarray:
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    return np.array([-0.8, 0.8]) + rng.uniform([-0.3, -0.08], [0.3, 0.08], (n, 2)) @ turn


def _crescent(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([-0.7, -0.7]) + _arc(n, rng, (0.34, 0.46), 1.1 * np.pi)


def _ring(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([0.9, -0.8]) + _arc(n, rng, (0.29, 0.41), 2.0 * np.pi)


def _arc(n: int, rng: np.random.Generator, radii: tuple[float, float], angle: float) -> np.ndarray:
    """Spread evenly over an area between two radii."""
    inner, outer = radii
    radius = np.sqrt(rng.uniform(inner**2, outer**2, n))
    phi = rng.uniform(0.0, angle, n)
    return radius[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])


_DRAW: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "disc": _disc,
    "bar": _bar,
    "crescent": _crescent,
    "ring": _ring,
}


@cache
def _table(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set as numbers, and their labels as text."""
    table = pl.read_parquet(folder / f"{name}.parquet")
    label = table[LABELS[name][0]].cast(pl.String).to_numpy()
    if name == TEXTS:
        return _words(table["text"].to_list()), label
    features = table.drop(LABELS[name])
    text = [column for column, kind in features.schema.items() if kind == pl.String]
    return features.to_dummies(text).to_numpy().astype(np.float64), label


def _words(texts: list[str]) -> np.ndarray:
    weights = TfidfVectorizer(min_df=5, stop_words="english", sublinear_tf=True)
    svd = TruncatedSVD(SVD_COLUMNS, random_state=SEED)
    return normalize(svd.fit_transform(weights.fit_transform(texts)))


def _scaled(rows: Rows) -> Rows:
    return Rows(Standardiser.of(rows.X)(rows.X), rows.y)
