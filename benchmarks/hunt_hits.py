"""Hits among the first rows of a hunt, beside five peers: `python -m benchmarks.hunt_hits`.

A few cases of a table keep their label, 100 other rows or none are cleared, and all further rows
are unlabelled. Each method ranks the unlabelled rows; what counts is how many of the first 100 are
cases. Tables have at most 20,000 rows, of which at most 5 percent are rare, so that a list of 100
cannot be filled by chance; each draw picks other cases.

- hunt: `rareclass.hunt.case_score`, by which `rareclass hunt` ranks; no setting differs.
- logistic regression: the cases against all other rows, balanced, C = 1.
- one-class SVM of the cases: Gaussian, nu = 0.1, gamma "scale".
- isolation forest of all rows, 200 trees; and its rank times that of the distance to a case.
- label spreading (Zhou et al., 2004) on the graph of the 10 nearest neighbours, alpha 0.2 and 0.8;
  where nothing is cleared, 100 unlabelled rows drawn at random are taken to be no cases.
- nearest case; where rows are cleared, relative to the nearest of them.

The peers see standardised numbers, medians for empty cells, and values of categories one by one.
The settings of the hunt were chosen on `CHOOSING` (draws 0 to 3); the other tables confirm them.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse
from scipy.stats import rankdata
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import OneClassSVM

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.pages.page import chosen, mean_of_each
from benchmarks.paper_tables.protocol import needed_folder
from rareclass.encoding.hunt import HuntEncoder
from rareclass.hunt.case_score import score_unlabelled
from rareclass.review.table import read_review_table

CHOOSING = ("mammography", "payments", "thyroid", "bank_marketing", "kdd", "satimage")
CONFIRMING = (
    "unsw", "shuttle", "credit", "coil2000", "cod_rna", "wine", "donors", "yeast", "scene", "magic",
)  # fmt: skip
# The file of each table, and a column that says what the target says.
FILES = {
    "mammography": ("mammography", ()), "payments": ("fraud_stream", ("TRANSACTION_ID",)),
    "thyroid": ("sick_euthyroid", ()), "bank_marketing": ("bank_marketing", ()),
    "kdd": ("kddcup99_10pct_train", ("attack",)), "satimage": ("satimage", ()),
    "unsw": ("unsw_nb15_backdoor", ()), "shuttle": ("shuttle", ("shuttle_class",)),
    "credit": ("give_me_some_credit", ()), "coil2000": ("coil2000", ()), "cod_rna": ("cod_rna", ()),
    "wine": ("wine_quality", ("quality",)), "donors": ("donors", ()), "yeast": ("yeast_ml8", ()),
    "scene": ("scene", ()), "magic": ("magic04", ()),
}  # fmt: skip
CASES, CLEARED, FIRST = (3, 5, 10, 20), (0, 100), 100
_ROWS, _SHARE, _LEAST_RARE, _SEED, _NEIGHBOURS = 20_000, 0.05, 200, 20261125, 10

Floats = np.ndarray


class Draw(NamedTuple):
    """Rows that keep their label."""

    cases: np.ndarray
    cleared: np.ndarray
    seed: int


class Table:
    """A table, encoded once as a hunt does and once as the peers see it."""

    def __init__(self, name: str, folder: Path) -> None:
        rows = sample(pl.read_parquet(folder / f"{FILES[name][0]}.parquet").drop(FILES[name][1]))
        self.rare = rows["target"].cast(pl.Float64).to_numpy() > 0.0
        features = rows.drop("target")
        self.points = _as_in_a_hunt(features, self.rare)
        self.peers = as_usual(features)

    @cached_property
    def graph(self) -> Any:
        """Normalised graph of nearest neighbours."""
        graph = kneighbors_graph(self.peers, _NEIGHBOURS)
        graph = graph.maximum(graph.T)
        root = sparse.diags(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
        return (root @ graph @ root).tocsr()

    @cached_property
    def isolation(self) -> Floats:
        """Anomaly of every row; higher is stranger."""
        forest = IsolationForest(n_estimators=200, random_state=0).fit(self.peers)
        return -forest.score_samples(self.peers)

    def to_nearest(self, known: np.ndarray) -> Floats:
        """Return the distance of every row to the nearest of some."""
        return np.asarray(pairwise_distances(self.peers, self.peers[known]).min(axis=1))


def sample(rows: pl.DataFrame) -> pl.DataFrame:
    """Draw at most 20,000 rows, with 200 rare ones where there are, and 5 percent at most."""
    rng = np.random.default_rng(_SEED)
    rare = rows["target"].cast(pl.Float64).to_numpy() > 0.0
    kept = rng.choice(len(rare), min(_ROWS, len(rare)), replace=False)
    more = rng.permutation(np.setdiff1d(np.flatnonzero(rare), kept))
    kept = np.append(kept, more[: max(_LEAST_RARE - int(rare[kept].sum()), 0)])
    most = int(_SHARE / (1.0 - _SHARE) * np.count_nonzero(~rare[kept]))
    gone = rng.permutation(kept[rare[kept]])[most:]
    return rows[np.sort(np.setdiff1d(kept, gone))]


def _as_in_a_hunt(features: pl.DataFrame, rare: np.ndarray) -> Floats:
    """Return the points of a hunt, which do not depend on its labels."""
    status = pl.Series("status", np.where(np.arange(len(rare)) == 0, "case", None).tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        features.with_columns(status).write_parquet(path)
        read = read_review_table(path, "status")
        return HuntEncoder(read.used).fit_transform(read.frame)


def as_usual(features: pl.DataFrame) -> Floats:
    """Encode rows for peers: standardised numbers, and values of categories one by one."""
    frame = features.with_columns(pl.selectors.temporal().dt.epoch("s")).to_pandas()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", min_frequency=20, sparse_output=False)
    encoder = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
    )
    return np.asarray(encoder.fit_transform(frame))


def draw(rare: np.ndarray, n_cases: int, n_cleared: int, seed: int) -> Draw:
    """Choose the rows that keep their label."""
    rng = np.random.default_rng([seed, n_cases])
    cases = rng.permutation(np.flatnonzero(rare))[:n_cases]
    return Draw(cases, rng.permutation(np.flatnonzero(~rare))[:100][:n_cleared], seed)


def by_hunt(rows: Table, drawn: Draw) -> Floats:
    """Score every row as `rareclass hunt` does; rows with a label have no score."""
    code = np.full(len(rows.rare), -1)
    code[drawn.cases], code[drawn.cleared] = 1, 0
    scores = np.full(len(rows.rare), -np.inf)
    scores[code < 0] = score_unlabelled(rows.points, code, 1, drawn.seed).by_value[:, 0]
    return scores


def by_logistic_regression(rows: Table, drawn: Draw) -> Floats:
    """Score by the cases against all other rows."""
    is_case = np.zeros(len(rows.rare), dtype=bool)
    is_case[drawn.cases] = True
    model = LogisticRegression(class_weight="balanced", max_iter=1_000)
    return np.asarray(model.fit(rows.peers, is_case).decision_function(rows.peers))


def by_one_class_svm(rows: Table, drawn: Draw) -> Floats:
    """Score by the support of the cases."""
    model = OneClassSVM(nu=0.1, gamma="scale").fit(rows.peers[drawn.cases])
    return np.asarray(model.score_samples(rows.peers))


def by_isolation_near_a_case(rows: Table, drawn: Draw) -> Floats:
    """Multiply the ranks by anomaly and by the distance to a case."""
    near = rows.to_nearest(drawn.cases)
    return np.asarray(-np.log(rankdata(-rows.isolation)) - np.log(rankdata(near)))


def by_nearest(rows: Table, drawn: Draw) -> Floats:
    """Score by the nearest case, relative to the nearest cleared row where there is one."""
    near = rows.to_nearest(drawn.cases)
    if not len(drawn.cleared):
        return -near
    return -near / np.maximum(near + rows.to_nearest(drawn.cleared), 1e-300)


def by_spreading(alpha: float) -> Callable[[Table, Draw], Floats]:
    """Return label spreading with some alpha: the share of its neighbours in a row's label."""

    def score(rows: Table, drawn: Draw) -> Floats:
        others = drawn.cleared
        if not len(others):
            rng, n = np.random.default_rng(drawn.seed), len(rows.rare)
            others = rng.choice(np.setdiff1d(np.arange(n), drawn.cases), 100, replace=False)
        known = np.zeros((len(rows.rare), 2))
        known[others, 0] = known[drawn.cases, 1] = 1.0
        mass = known
        for _ in range(30):
            mass = alpha * (rows.graph @ mass) + (1.0 - alpha) * known
        reached = mass.sum(axis=1)
        share = np.divide(mass[:, 1], reached, out=np.full(len(mass), -1.0), where=reached > 0)
        return np.asarray(share + 1e-9 * mass[:, 1])

    return score


METHODS: dict[str, Callable[[Table, Draw], Floats]] = {
    "hunt": by_hunt,
    "logistic regression": by_logistic_regression,
    "one-class SVM": by_one_class_svm,
    "isolation forest": lambda rows, drawn: rows.isolation,
    "isolation forest x distance": by_isolation_near_a_case,
    "label spreading, 0.2": by_spreading(0.2),
    "label spreading, 0.8": by_spreading(0.8),
    "nearest case": by_nearest,
}


def hits(scores: Floats, rare: np.ndarray, drawn: Draw) -> int:
    """Count the cases among the first 100 rows without a label; equal scores in row order."""
    free = np.setdiff1d(np.arange(len(rare)), np.concatenate([drawn.cases, drawn.cleared]))
    return int(rare[free[np.argsort(-scores[free], kind="stable")[:FIRST]]].sum())


def measure(name: str, folder: Path, n_draws: int) -> list[dict[str, Any]]:
    """Return hits and seconds of every method in every setting and draw."""
    rows, cells = Table(name, folder), []
    for n_cases, n_cleared, seed in product(CASES, CLEARED, range(n_draws)):
        drawn = draw(rows.rare, n_cases, n_cleared, seed)
        about = {"set": name, "cases": n_cases, "cleared": n_cleared, "draw": seed}
        found, seconds = {}, {}
        for method, score in METHODS.items():
            start = time.process_time()
            found[method] = hits(score(rows, drawn), rows.rare, drawn)
            seconds[method] = round(time.process_time() - start, 3)
        cells.append({**about, "hits": found, "seconds": seconds})
    return cells


def mean_hits(cells: Sequence[dict[str, Any]], sets: Sequence[str]) -> list[dict[str, float]]:
    """Return the mean hits of each method over some tables and all draws, for each setting."""
    return [
        mean_of_each(c["hits"] for c in chosen(cells, cases=n, cleared=m) if c["set"] in sets)
        for m, n in SETTINGS
    ]


def lines(cells: Sequence[dict[str, Any]], sets: Sequence[str]) -> list[list[str]]:
    """Tabulate the mean hits over some tables and all draws, a line for each method."""
    means = mean_hits(cells, sets)
    return [[method, *(f"{mean[method]:.1f}" for mean in means)] for method in METHODS]


def by_table(cells: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Tabulate, for each table, the hunt's mean hits beside the best peer's of each setting."""
    made = []
    for name in dict.fromkeys(cell["set"] for cell in cells):
        row = [name]
        for mean in mean_hits(cells, [name]):
            ours = mean.pop("hunt")
            row.append(f"{ours:.0f} / {max(mean.values()):.0f}")
        made.append(row)
    return made


SETTINGS = tuple(product(CLEARED, CASES))
HEADER = ["method", *(f"{n} cases, {m} cleared" for m, n in SETTINGS)]


def page(result: dict[str, Any]) -> str:
    """Return the section of the page of results."""
    cells = result["cells"]
    n_draws = 1 + max(cell["draw"] for cell in cells)
    parts = [
        "Cases among the first 100 unlabelled rows, mean over tables and "
        f"{n_draws} draws of the labelled rows (`benchmarks/hunt_hits.py` says how the tables and "
        "the peers are made)."
    ]
    for title, names in (("confirm", CONFIRMING), ("settings were chosen on", CHOOSING)):
        own = [name for name in names if any(cell["set"] == name for cell in cells)]
        if own:
            parts += [f"Tables that {title}: {', '.join(own)}."]
            parts += [table(HEADER, lines(cells, own))]
    parts += ["The hunt / the best peer of each setting, by table:"]
    parts += [table(["table", *HEADER[1:]], by_table(cells))]
    return "\n\n".join(parts)


def stored_draws(
    name: str, about: str | None, draws: int, tables: Sequence[str], argv: Sequence[str] | None
) -> tuple[argparse.Namespace, Path, dict[str, Any]]:
    """Read the options of a benchmark of tables, its file, and what the file has so far."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--draws", type=int, default=draws)
    parser.add_argument("--only", nargs="+", metavar="TABLE", choices=tables, default=tables)
    parser.add_argument("--json", metavar="FILE", help=f"default: results/{name}.json")
    parser.add_argument("--again", action="store_true", help="measure anew what the file has")
    args = parser.parse_args(argv)
    path = Path(args.json) if args.json else record.RESULTS / f"{name}.json"
    return args, path, json.loads(path.read_text()) if path.exists() and not args.again else {}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the tables that the file has not, and print the page."""
    args, path, result = stored_draws("hunt_hits", __doc__, 10, [*CONFIRMING, *CHOOSING], argv)
    folder, cells = needed_folder(), result.get("cells", [])
    for name in args.only:
        if not any(cell["set"] == name for cell in cells):
            cells += measure(name, folder, args.draws)
            record.write("hunt_hits", {"cells": cells}, path)
            print(f"{name}: done", flush=True)
    print(page({"cells": cells}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
