"""A model to score with, wherever it was learned and wherever the rows are."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration.isotonic import ProbabilityInterval
from rareclass.errors import InputError
from rareclass.findings import warn
from rareclass.model.model_file import ModelFile, load_model
from rareclass.model.probability_interval import held_out_interval
from rareclass.model.scored import Seen, scored
from rareclass.model.targets import decision_of
from rareclass.remote import RemotePath, path_of
from rareclass.stream.checkpoint import is_checkpoint
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, open_table

# What the folder of a hunt has.
HUNT_SUMMARY = "hunt.json"


class Model:
    """A trained ranking that scores tables; `rareclass.load` opens one.

    Attributes
    ----------
    target : str
        Name of the column whose classes were learned. A table to be scored need not have it.
    columns : list of str
        Names of the columns that a table must have, in any order; others are left out. Empty for
        a model of svmlight rows, which have no names.
    classes : tuple of str
        Names of the classes, the one ranked first comes last: the rest and the rare class, or the
        levels from the lowest to the highest.
    thresholds : ndarray of shape (n_classes - 1,)
        Scores at which a class ends: a row is of class k where
        ``thresholds[k - 1] < score <= thresholds[k]``. They were found on rows held out.
    metadata : dict
        What the file says of the training: counts, columns and what was done with them, method
        and its choices, measures on rows held out, versions, date.

    Examples
    --------
    >>> import rareclass
    >>> model = rareclass.load("model.skops")  # doctest: +SKIP
    >>> model.score_samples(new_rows)  # doctest: +SKIP
    array([0.013, 1.204, 0.118])
    """

    def __init__(self, content: ModelFile) -> None:
        self._content = content
        self._decision = decision_of(content.model, content.metadata)
        self.metadata = content.metadata
        self.target: str = content.metadata["target"]
        self.columns = [column.name for column in getattr(content.encoder, "columns", ())]
        self.classes = tuple(self._decision.names)
        self.thresholds = self._decision.thresholds

    def __repr__(self) -> str:
        return f"<Model of {self.target!r}: {', '.join(self.classes)}>"

    def score_samples(self, table: Any, separator: str | None = None) -> NDArray[np.float64]:
        """Return a score for each row: the higher, the more like the rare class.

        For levels: the higher, the higher the level. Only the order of scores was learned;
        probabilities are `predict_proba`'s.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, str or Path
            Rows with `columns`, of the types that the training table had; or a CSV, Parquet, JSON
            lines or svmlight file of any size, read a batch at a time.
        separator : str, optional
            What separates the cells of a CSV file; by default found out.

        Returns
        -------
        ndarray of shape (n_rows,)
            Row order kept. Values that training never saw count as empty or as no known value.
            O(rows x landmarks) time for kernel machines, O(rows x columns) for linear ones.

        Raises
        ------
        InputError
            When a column is missing, or a cell does not fit: it names column, row and value.
        """
        rows = _opened(table, separator)
        batches = scored(self._content, rows, None, Seen(counts_cells=False))
        return np.concatenate([np.empty(0), *(batch.scores for batch in batches)])

    def predict(self, table: Any, separator: str | None = None) -> NDArray[Any]:
        """Return the class of each row by `thresholds`, as one of `classes`.

        Parameters
        ----------
        table, separator
            As for `score_samples`.

        Returns
        -------
        ndarray of str of shape (n_rows,)
        """
        called = self._decision.decide(self.score_samples(table, separator))
        return np.array(self.classes)[called]

    def predict_proba(self, table: Any, separator: str | None = None) -> NDArray[np.float64]:
        """Return the probability of each of `classes`, at the training's share of rare rows.

        Parameters
        ----------
        table, separator
            As for `score_samples`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The rare class, or the highest level, is the last column.

        Raises
        ------
        InputError
            As `score_samples`; where the model has no probabilities: no rows were held out, or it
            is of a stream.
        """
        scores = self.score_samples(table, separator)
        levels = self._content.level_calibration
        if levels is not None:
            return levels(scores)
        rare = self._calibrated(scores)
        return np.column_stack([1.0 - rare, rare])

    def predict_proba_interval(
        self, table: Any, separator: str | None = None
    ) -> ProbabilityInterval:
        """Return bounds of the probability of the rare class: how little held-out rows tell of it.

        One of the two, the one that goes by the true label, is calibrated for rows drawn as those
        of training (Venn-Abers prediction); they are as at the prevalence of `predict_proba`, which
        lies between them.

        Parameters
        ----------
        table, separator
            As for `score_samples`.

        Returns
        -------
        ProbabilityInterval
            ``low`` and ``high``, each of shape (n_rows,).

        Raises
        ------
        InputError
            As `score_samples`; where the file holds no scores of rows held out.
        """
        interval = held_out_interval(self._content)
        scores = self.score_samples(table, separator)
        return interval(scores, self._calibrated(scores))

    def _calibrated(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        calibration = self._content.calibration
        if calibration is None:
            raise InputError(
                f"This model of {self.target!r} has no probabilities: it kept no map from scores "
                "of rows held out.",
                "rareclass fit makes models that have them, of tables with enough rare rows.",
            )
        return calibration(scores)


def load(path: str | Path) -> Model:
    """Open a model that ``rareclass fit`` or ``rareclass stream`` saved, to score tables with it.

    Nothing in the file is executed: it holds numbers and the names of types, and only types on
    the library's own list are built. The package alone will do; skrub as well (``rareclass[cli]``)
    where a model of ``--method`` learned from words, texts or dates.

    Parameters
    ----------
    path : str or Path
        A model file of ``rareclass fit``; the folder of ``rareclass stream``, which stands for
        its newest checkpoint; one checkpoint in it; or the folder of ``rareclass hunt``.

    Returns
    -------
    Model
        With `~Model.score_samples`, `~Model.predict`, `~Model.predict_proba` and its interval for
        tables and files.

    Raises
    ------
    InputError
        When there is no such file, it is damaged, or is no model; when it needs skrub, which is
        not installed.

    Warns
    -----
    UserWarning
        When the file opens but something is odd, such as another version of scikit-learn.

    Examples
    --------
    >>> import rareclass
    >>> model = rareclass.load("model.skops")  # doctest: +SKIP
    >>> top = model.score_samples("new_rows.parquet").argsort()[::-1][:100]  # doctest: +SKIP
    """
    try:
        content = open_model(path_of(path))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "skrub":
            raise
        raise InputError(
            f"The model {path} encodes words, texts or dates by skrub, which is not installed.",
            'Install it: pip install "rareclass[cli]".',
        ) from error
    for notice in content.notices:
        warn(f"{path}: {notice}.")
    return Model(content)


def open_model(path: Path) -> ModelFile:
    """The content of a model file, of a checkpoint or a stream's newest one, of a hunt's folder."""
    if isinstance(path, RemotePath):  # folders are on this machine
        return load_model(path)
    if (path / HUNT_SUMMARY).is_file():
        from rareclass.hunt.model import load_balls

        return load_balls(path)
    if not is_checkpoint(path):
        return load_model(path)
    from rareclass.stream.model import load_stream_model  # the learners, all of them

    return load_stream_model(path)


class _HeldTable:
    """Rows in memory, read as a file is."""

    path, format_name = Path("the table"), "table"

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame, self.columns = frame, frame.columns

    @property
    def n_bytes(self) -> int:
        return int(self._frame.estimated_size())

    def estimate_rows(self) -> int:
        return self._frame.height

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        as_is = columns is None or [*columns] == self.columns
        chosen = self._frame if as_is else self._frame.select(columns)
        yield from chosen.iter_slices(batch_rows)


def _opened(table: Any, separator: str | None) -> TableFile | SvmlightFile:
    if isinstance(table, str | Path):
        return open_table(path_of(table), separator)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"A {type(table).__name__} is no table with named columns.",
            "Give a pandas, polars or pyarrow table, or the name of a file.",
        ) from error
    try:
        return _HeldTable(frame.to_polars())
    except (TypeError, ValueError) as error:
        raise InputError(f"The table cannot be read: {error}.") from error
