"""A process that runs one method on all folds: ``python -m rareclass.compare.child``.

It is given four files: the rows, the estimator, where to say how far it is (a line of JSON an
event), and where to write the scores.
"""

import json
import os
import pickle
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.compare.fold_scores import fold_scores
from rareclass.compare.process_memory import held_now, peak

_MOST_WARNINGS = 5
_LOOK_EVERY = 1.0


def main(paths: list[str]) -> None:
    """Run the method, and say on the way what it does."""
    _end_with_parent()
    rows_file, estimator_file, said, out = map(Path, paths)
    found: list[np.ndarray] = []
    with said.open("a") as log, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")

        def say(**event: Any) -> None:
            log.write(json.dumps(event) + "\n")
            log.flush()

        try:
            rows = pickle.loads(rows_file.read_bytes())
            estimator = pickle.loads(estimator_file.read_bytes())
            before = held_now()
            say(event="ready")
            for fold in fold_scores(estimator, rows):
                found.append(fold.scores)
                say(event="fold", seconds=fold.seconds)
        except Exception as error:
            say(event="failed", message=f"{type(error).__name__}: {error}")
            return
        np.save(out, np.concatenate(found))
        after = peak()
        memory = None if before is None or after is None else max(after - before, 0)
        texts = list(dict.fromkeys(str(each.message) for each in caught))[:_MOST_WARNINGS]
        say(event="done", memory=memory, warnings=texts)


def _end_with_parent() -> None:
    """Let a thread end this process when the one that began it is gone, however it went."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1:])
