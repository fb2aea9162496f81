"""Nine tables with one frequent class, called "rest", and two to five rare ones.

Most come from the data folder with their published columns. Ecoli and yeast are put together from
KEEL's two-class files, each of which marks one class (`keel`). The machine failures are generated.
What is left out or merged:

- glass: the two kinds of window glass are the rest.
- wine: qualities 5 to 7 are the rest, 8 and 9 one class.
- abalone: three rare ranges of age.
- kdd: distinct rows of KDD Cup 99's 10 percent file; of the normal and denial-of-service rows
  20,000, of the probes 300, all of U2R and R2L.
- newsgroups: 300 texts of each of 16 groups are the rest, 60 of each of four others are rare; the
  features are 60 singular vectors of tf-idf, learned from all texts without their groups.
- shuttle: 20,000 rows of the three frequent classes. Two spellings of a class are one class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.paper_tables import keel

REST = "rest"
PROBES = ("ipsweep", "nmap", "portsweep", "satan")
RARE_GROUPS = ("sci.space", "rec.autos", "talk.politics.guns", "comp.graphics")
SHUTTLE_CLASSES = {
    "Fpv Open": "Fpv Open",
    "Flow Proportioning Valve Open": "Fpv Open",
    "Fpv Close": "Fpv Close",
    "Flow Proportioning Valve Close": "Fpv Close",
    "Bpv Open": "Bpv Open",
    "Bipropellant Valve Open": "Bpv Open",
    "Bpv Close": "Bpv Close",
    "Bipropellant Valve Close": "Bpv Close",
}
# Overstrain of a product of low, medium and high quality: minutes of wear times torque in Nm.
OVERSTRAIN = {"L": 11_000.0, "M": 12_000.0, "H": 13_000.0}
WEAR = {"L": 2.0, "M": 3.0, "H": 5.0}  # minutes that one product adds
U2R = (
    "buffer_overflow", "httptunnel", "loadmodule", "perl", "ps", "rootkit", "sqlattack", "xterm",
)  # fmt: skip


class Table(NamedTuple):
    """Features, and the class of each row."""

    X: pl.DataFrame
    y: np.ndarray


@dataclass(frozen=True)
class Recipe:
    """How a table is made.

    Parameters
    ----------
    read : callable
        ``read(folder)`` gives the table.
    sources : tuple of str
        Parquet files of the data folder, or names of KEEL's files; none where it is generated.
    is_chosen_on : bool
        Whether the members that tell classes apart were chosen on its first split.
    trees : int
        Trees of CatBoost.
    splits : int
        Splits that are measured, at most.
    """

    read: Callable[[Path], Table]
    sources: tuple[str, ...] = ()
    is_chosen_on: bool = False
    trees: int = 1000
    splits: int = 1

    def is_there(self, folder: Path) -> bool:
        """Say whether every source is installed."""
        return all(
            (folder / f"{name}.parquet").is_file() or keel.path(name) is not None
            for name in self.sources
        )


def glass(folder: Path) -> Table:
    """Five kinds of glass; window glass is the rest."""
    frame = pl.read_parquet(folder / "glass.parquet")
    kind = pl.col("glass_type").cast(pl.Int64)
    named = pl.when(kind <= 2).then(pl.lit(REST)).otherwise(pl.format("type {}", kind))
    return _table(frame, named, "glass_type")


def wine(folder: Path) -> Table:
    """Very good and bad white wines."""
    frame = pl.read_parquet(folder / "wine_quality.parquet")
    quality = pl.col("quality").cast(pl.Int64)
    named = pl.format("quality {}", quality.clip(upper_bound=8))
    return _table(frame, pl.when(quality.is_between(5, 7)).then(pl.lit(REST)).otherwise(named),
                  "quality")  # fmt: skip


def abalone(folder: Path) -> Table:
    """Young, old and very old shells, by their rings."""
    frame = pl.read_parquet(folder / "abalone.parquet")
    rings = pl.col("rings").cast(pl.Int64)
    named = (
        pl.when(rings <= 4).then(pl.lit("1 to 4 rings"))
        .when(rings >= 20).then(pl.lit("20 rings and more"))
        .when(rings >= 16).then(pl.lit("16 to 19 rings"))
        .otherwise(pl.lit(REST))
    )  # fmt: skip
    return _table(frame, named, "rings")


def shuttle(folder: Path) -> Table:
    """Rare states of the valves of a space shuttle."""
    frame = pl.read_parquet(folder / "shuttle.parquet")
    named = pl.col("shuttle_class").replace_strict(SHUTTLE_CLASSES, default=REST)
    return _thinned(_table(frame, named, "shuttle_class"), {REST: 20_000})


def kdd(folder: Path) -> Table:
    """Attacks on a network: U2R, R2L and probes."""
    frame = pl.read_parquet(folder / "kddcup99_10pct_train.parquet").unique(maintain_order=True)
    attack = pl.col("attack").cast(pl.String)
    named = (
        pl.when(attack.is_in(U2R)).then(pl.lit("U2R"))
        .when(pl.col("target") == 1).then(pl.lit("R2L"))
        .when(attack.is_in(PROBES)).then(pl.lit("probe"))
        .otherwise(pl.lit(REST))
    )  # fmt: skip
    return _thinned(_table(frame, named, "attack"), {REST: 20_000, "probe": 300})


def newsgroups(folder: Path) -> Table:
    """Texts of four rare groups among those of 16 others."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = pl.read_parquet(folder / "newsgroups20.parquet")
    group = frame["group"].cast(pl.String)
    sizes = {name: 60 if name in RARE_GROUPS else 300 for name in sorted(group.unique())}
    texts, group_of = _thinned(Table(frame.select("text"), group.to_numpy()), sizes)
    words = TfidfVectorizer(min_df=3, sublinear_tf=True, stop_words="english", max_features=30_000)
    reduced = TruncatedSVD(60, random_state=0).fit_transform(
        words.fit_transform(texts["text"].to_list())
    )
    names = [f"vector {k + 1}" for k in range(reduced.shape[1])]
    is_rare = np.isin(group_of, RARE_GROUPS)
    return Table(pl.DataFrame(reduced, schema=names), np.where(is_rare, group_of, REST))


def from_keel(names: tuple[str, ...], _: Path) -> Table:
    """Put two-class tables of the same rows together: each names the rows of one class.

    The tables have their rows in different orders, and rows may have copies: of equal rows as many
    are of a class as its table says.
    """
    tables = []
    for name in names:
        file = keel.path(name)
        assert file is not None
        tables.append(keel.read(file))
    rare = [table.filter(pl.col(keel.TARGET) == 1).drop(keel.TARGET) for table in tables]
    every = _with_copies(tables[0].drop(keel.TARGET))
    rest = every.join(_with_copies(pl.concat(rare)), on=every.columns, how="anti")
    parts = [rest.drop(_COPY), *rare]
    assert sum(map(len, parts)) == len(tables[0]), f"{names} mark a row twice"
    labels = np.repeat([REST, *names], [len(part) for part in parts])
    return Table(pl.concat(parts), labels.astype(object))


_COPY = "copy"


def _with_copies(frame: pl.DataFrame) -> pl.DataFrame:
    """Number equal rows, so that each is another."""
    return frame.with_columns(pl.int_range(pl.len()).over(frame.columns).alias(_COPY))


def machine_failures(_: Path) -> Table:
    """10,000 products of a machine and five kinds of failure, after Matzka (2020).

    Temperatures are random walks; torque and power are normal, and give the speed; wear grows until
    the tool is changed or fails. Tool wear, heat dissipation, power and overstrain have rules;
    one product in 1,000 fails at random. Of several failures the last named one counts: random,
    wear, overstrain, power, heat.
    """
    rng, n = np.random.default_rng(0), 10_000
    quality = rng.choice(list("LMH"), n, p=[0.5, 0.3, 0.2])
    air = _random_walk(rng, n, 300.0, 2.0)
    process = air + _random_walk(rng, n, 10.0, 1.0)
    torque = np.maximum(rng.normal(40.0, 10.0, n), 3.8)
    radians = rng.normal(6_279.0, 1_067.0, n) / torque
    speed = np.clip(radians * 60.0 / (2.0 * np.pi), 1_168.0, 2_886.0)
    power = torque * speed * 2.0 * np.pi / 60.0
    wear, is_worn = _tool_wear(rng, quality)
    y = np.full(n, REST, dtype=object)
    y[rng.random(n) < 0.001] = "random"
    y[is_worn] = "wear"
    y[wear * torque > np.array([OVERSTRAIN[q] for q in quality])] = "overstrain"
    y[(power < 3_500.0) | (power > 9_000.0)] = "power"
    y[(process - air < 8.6) & (speed < 1_380.0)] = "heat"
    columns = {
        "quality": quality,
        "air, K": air.round(1),
        "process, K": process.round(1),
        "speed, rpm": speed.round(),
        "torque, Nm": torque.round(1),
        "wear, min": wear,
    }
    return Table(pl.DataFrame(columns), y)


def _random_walk(rng: np.random.Generator, n: int, mean: float, deviation: float) -> np.ndarray:
    walk = rng.normal(size=n).cumsum()
    return (walk - walk.mean()) / walk.std() * deviation + mean


def _tool_wear(rng: np.random.Generator, quality: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minutes of wear at each product, and whether the tool failed there.

    A tool ends between 200 and 240 minutes; it fails six times in ten, else it is replaced.
    """
    wear, is_worn = np.zeros(len(quality)), np.zeros(len(quality), dtype=bool)
    minutes, end = 0.0, rng.uniform(200.0, 240.0)
    for k, product in enumerate(quality):
        minutes += WEAR[product]
        wear[k] = minutes
        if minutes >= end:
            is_worn[k] = rng.random() < 0.6
            minutes, end = 0.0, rng.uniform(200.0, 240.0)
    return wear, is_worn


def _table(frame: pl.DataFrame, label: pl.Expr, column: str) -> Table:
    y = frame.select(label.alias("y"))["y"].to_numpy().astype(object)
    return Table(frame.drop(column, "target"), y)


def _thinned(table: Table, sizes: dict[str, int]) -> Table:
    """Keep so many rows of these classes, drawn at random, and all rows of the others."""
    rng = np.random.default_rng(0)
    keep = [np.flatnonzero(~np.isin(table.y, list(sizes)))]
    for name, size in sizes.items():
        keep.append(rng.choice(np.flatnonzero(table.y == name), size, replace=False))
    rows = np.sort(np.concatenate(keep))
    return Table(table.X[rows], table.y[rows])


def _of_keel(*names: str) -> Recipe:
    return Recipe(partial(from_keel, names), names, is_chosen_on=True, splits=2)


TABLES = {
    "glass": Recipe(glass, ("glass",), True, splits=2),
    "ecoli": _of_keel("ecoli1", "ecoli2", "ecoli3", "ecoli4"),
    "yeast": _of_keel("yeast3", "yeast4", "yeast5", "yeast6"),
    "wine": Recipe(wine, ("wine_quality",), True, splits=2),
    "machine failures": Recipe(machine_failures, (), True, 300),
    "kdd": Recipe(kdd, ("kddcup99_10pct_train",), True, 300),
    "abalone": Recipe(abalone, ("abalone",)),
    "newsgroups": Recipe(newsgroups, ("newsgroups20",), trees=300),
    "shuttle": Recipe(shuttle, ("shuttle",), trees=300),
}
