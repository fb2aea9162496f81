"""All that a stream knows: what a checkpoint holds and a restart takes up."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import InputError
from rareclass.online.state import flatten
from rareclass.stream.alerts import Alerts, new_alerts
from rareclass.stream.best_windows import BestWindows
from rareclass.stream.column_drift import LEAST_SEGMENT, ColumnCounts
from rareclass.stream.drift_alarm import DriftAlarm
from rareclass.stream.learners import make_learner
from rareclass.stream.options import StreamOptions
from rareclass.stream.rejects import CONTRADICTED, RejectedFile
from rareclass.stream.waiting_rows import LearnedLabels, WaitingRows
from rareclass.stream.window import Window
from rareclass.tables.batch import Batch
from rareclass.tables.raw_cells import read_rare_or_rest

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

_OTHER_LABEL = {"0": "1", "-1": "1", "false": "true", "no": "yes"}
CLASSES = (0, 1)  # the rest, the rare class


@dataclass
class Counters:
    """What has come so far."""

    rows: int = 0  # records, rejected ones included
    labelled: int = 0  # learned from
    rare: int = 0
    unlabelled: int = 0  # scored only
    reported: int = 0  # records at the last row of the log


@dataclass
class StreamState:
    """All that a stream knows."""

    encoder: OnlineEncoder
    learner: "OnlineRanker"  # begun with the first row
    held: WaitingRows
    window: Window
    counters: Counters
    rejected: RejectedFile
    learned: LearnedLabels
    contradicted: RejectedFile
    labels: dict[str, str]  # what "rare" and "rest" are called
    drift: ColumnCounts
    best: BestWindows
    alarm: DriftAlarm | None = None  # None: drift is reported only
    alerts: Alerts | None = None
    columns: list[str] | None = None  # where the source's first row does not name them all
    position: dict[str, Any] | None = None  # where it goes on; None: at its beginning


def to_checkpoint(state: StreamState, options: StreamOptions) -> dict[str, Any]:
    """Return the state as nested dictionaries of arrays and JSON values."""
    begun = hasattr(state.learner, "state_")
    saved = {
        "options": options.lasting(),
        "columns": state.columns,
        "position": state.position,
        "labels": state.labels,
        "encoder": state.encoder.to_state(),
        "learner": {
            "n_features": state.learner.n_features_in_ if begun else None,
            "state": flatten(state.learner.state_) if begun else {},
        },
        "held": state.held.to_state(),
        "window": state.window.to_state(),
        "counters": asdict(state.counters),
        "rejected": state.rejected.to_state(),
        "learned": state.learned.to_state(),
        "contradicted": state.contradicted.to_state(),
        "drift": state.drift.to_state(),
        "best": state.best.to_state(),
    }
    if state.alarm is not None:
        saved["alarm"] = state.alarm.to_state()
    if state.alerts is not None:
        saved["alerts"] = state.alerts.to_state()
    return saved


def from_checkpoint(saved: dict[str, Any], folder: Path, options: StreamOptions) -> StreamState:
    """Return the state that `to_checkpoint` took apart; cuts the files beside it.

    What a stream did not look at when the checkpoint was made, it looks at from here on.
    """
    alerts = alerts_of(options, saved.get("alerts"))  # first: it may be refused
    held = WaitingRows.from_state(saved["held"])
    learned = LearnedLabels(held.capacity)
    contradicted = {"count": 0, "length": 0, "last": None}
    if "learned" in saved:  # streams begun with a version that did not look are gone on with
        learned = LearnedLabels.from_state(saved["learned"])
        contradicted = saved["contradicted"]
    return StreamState(
        encoder=OnlineEncoder.from_state(saved["encoder"]),
        learner=learner_of(saved),
        held=held,
        window=Window.from_state(saved["window"]),
        counters=Counters(**saved["counters"]),
        rejected=RejectedFile.from_state(folder, saved["rejected"]),
        learned=learned,
        contradicted=RejectedFile.from_state(folder, contradicted, CONTRADICTED),
        labels=saved["labels"],
        drift=ColumnCounts.from_state(saved["drift"]) if "drift" in saved else new_drift(options),
        best=BestWindows.from_state(saved["best"]) if "best" in saved else BestWindows(),
        alarm=DriftAlarm.from_state(saved["alarm"]) if "alarm" in saved else None,
        alerts=alerts,
        columns=saved["columns"],
        position=saved["position"],
    )


def new_drift(options: StreamOptions) -> ColumnCounts:
    """Return counts of columns that have seen nothing; a segment is a window."""
    return ColumnCounts(max(options.window, LEAST_SEGMENT), options.half_life)


def alerts_of(options: StreamOptions, saved: dict[str, Any] | None) -> Alerts | None:
    """Return the alerts of a stream, gone on with or new; None where none are wanted."""
    if options.alerts is None:
        return None
    path = Path(options.alerts)
    if saved is not None:
        return Alerts.from_state(path, options.time_column, saved)
    return new_alerts(path, options.budget, options.time_column)


def learner_of(saved: dict[str, Any]) -> "OnlineRanker":
    """Return the learner of a checkpoint, ready to score and to go on.

    Raises `ValueError` where its state is not one of such a learner, and `InputError` where it has
    other parts.
    """
    options, kept = saved["options"], saved["learner"]
    learner = make_learner(options["learner"], options["parameters"])
    if kept["n_features"] is not None:
        n_features = len(saved["encoder"]["features"])
        if kept["n_features"] != n_features:
            raise ValueError(f"the learner does not know the {n_features} features of its encoder")
        learner.start(n_features, CLASSES)
        _check_parts(learner, kept["state"])
        learner.take_up(kept["state"])
    return learner


def _check_parts(learner: "OnlineRanker", kept: dict[str, Any]) -> None:
    """Raise `InputError` where a state was left by a learner of other parts."""
    parts = flatten(learner.state_).keys()
    if kept.keys() != parts:
        other = sorted({name.partition(".")[0] for name in kept.keys() ^ parts})
        raise InputError(
            f"The folder was begun by another version of {type(learner).__name__}: "
            f"{', '.join(other)} differ.",
            "Begin anew in another folder, or go on with the version that began it.",
        )


def label_names(first: Batch, target: str, positive: str | None) -> dict[str, str]:
    """Return what the rare class and the rest are called in the first rows of a stream.

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
