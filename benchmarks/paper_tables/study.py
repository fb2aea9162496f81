"""What the commands share: their options, running independent tasks."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from joblib import Parallel, delayed

from benchmarks.paper_tables.methods import METHODS
from rareclass.machine import track

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")

JOBS = (1, "tasks at a time (default: 1)")


def options(
    description: str,
    methods: Sequence[str],
    argv: Sequence[str],
    known: Iterable[str] = METHODS,
    **own: tuple[Any, ...],
) -> argparse.Namespace:
    """Parse --methods (among `known`), --json and the study's own: name=(default, help).

    A default of False makes a flag, a list takes names between commas, None takes text. A third
    value names the choices.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper_tables", description=description
    )
    names = partial(_method_names, known=list(known))
    parser.add_argument(
        "--methods", type=names, default=list(methods), help=f"among {', '.join(known)}"
    )
    parser.add_argument("--json", metavar="FILE", help="default: benchmarks/results/NAME.json")
    for name, (default, text, *_) in own.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true", help=text)
            continue
        kind = _names if isinstance(default, list) else str if default is None else type(default)
        parser.add_argument(option, type=kind, default=default, help=text)
    args = parser.parse_args(argv)
    for name, (_, _, *choices) in own.items():
        value = getattr(args, name)
        named = value if isinstance(value, list) else [value]
        unknown = [one for one in named if choices and one not in choices[0]]
        if unknown:
            raise SystemExit(
                f"--{name}: no {', '.join(unknown)}; there are {', '.join(choices[0])}"
            )
    return args


def parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The options as they go into the JSON file; where that file lies does not matter."""
    return {name: value for name, value in vars(args).items() if name != "json"}


def run_all(
    description: str,
    function: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    jobs: int,
    keep: Callable[[Task, Outcome], None] | None = None,
) -> list[Outcome]:
    """function(task) for every task, in order, with progress on a terminal.

    `keep` gets each task with its outcome as soon as it and those before it are done.
    """
    outcomes = Parallel(n_jobs=jobs, return_as="generator")(delayed(function)(t) for t in tasks)
    results = []
    with track(description, total=len(tasks)) as advance:
        for task, outcome in zip(tasks, outcomes, strict=True):
            results.append(outcome)
            if keep is not None:
                keep(task, outcome)
            advance()
    return results


def figure(cell: tuple[float, float | None]) -> str:
    """Mean and, where it is known, standard error, as the paper prints them."""
    mean, error = cell
    return f"{mean:.1f}" if error is None else f"{mean:.1f} ± {error:.1f}"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _method_names(text: str, known: Sequence[str]) -> list[str]:
    by_lower = {name.lower(): name for name in known}
    names = _names(text)
    unknown = [name for name in names if name.lower() not in by_lower]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown method {', '.join(unknown)}; there are {', '.join(known)}"
        )
    return [by_lower[name.lower()] for name in names]
