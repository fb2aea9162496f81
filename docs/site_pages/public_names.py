"""The API reference: a page for each public name, made of the ``__all__`` of the public modules."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

# A public module, and what its part of the reference is called.
PUBLIC_MODULES = {
    "rareclass": "Estimators",
    "rareclass.online": "Online learners",
    "rareclass.decide": "Thresholds and probabilities",
    "rareclass.metrics": "Metrics and tests",
    "rareclass.compare": "Methods beside each other",
    "rareclass.explain": "Explanations",
    "rareclass.labels": "Audits of labels",
    "rareclass.audit": "The outcome of an audit",
    "rareclass.report": "Plots and the report",
    "rareclass.folds": "Folds",
    "rareclass.rows": "Rows in files",
    "rareclass.stream.log": "What a stream leaves",
    "rareclass.ranking.losses": "Losses",
    "rareclass.hyperball": "Balls",
    "rareclass.review": "Reviews and their journal",
    "rareclass.decide.calibration": "Maps from scores to probabilities",
    "rareclass.moments.covariance": "Covariance models",
    "rareclass.theory": "Stability bounds",
}


def public_names(module_name: str) -> list[str]:
    """Return the classes and functions in a module's ``__all__``, as they stand there."""
    module = import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module_name
    ]
    return [name for name in names if callable(getattr(module, name))]


def reference() -> dict[str, list[tuple[str, Any]]]:
    """Return the names of each public module; what several have, for the first of them alone."""
    seen: set[int] = set()
    found = {}
    for module_name in PUBLIC_MODULES:
        module, listed = import_module(module_name), []
        for name in public_names(module_name):
            value = getattr(module, name)
            if id(value) not in seen:
                seen.add(id(value))
                listed.append((name, value))
        found[module_name] = listed
    return found


def write_api_pages(folder: Path) -> None:
    """Write index.rst and a page for each name; leave files alone that are as they should be."""
    pages = {"index": _index()}
    for module_name, listed in reference().items():
        for name, value in listed:
            pages[f"{module_name}.{name}"] = _page(module_name, name, value)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for stem, text in pages.items():
        path = folder / f"{stem}.rst"
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def _index() -> str:
    lines = ["API", "===", ""]
    for module_name, listed in reference().items():
        title = PUBLIC_MODULES[module_name]
        paths = [f"{module_name}.{name}" for name, _ in listed]
        if not paths:
            continue
        lines += [title, "-" * len(title), "", f"From ``{module_name}``:", ""]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {path}" for path in paths]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {path.rpartition('.')[2]} <{path}>" for path in paths]
        lines.append("")
    return "\n".join(lines)


def _page(module_name: str, name: str, value: Any) -> str:
    path = f"{module_name}.{name}"
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module_name}", ""]
    if not inspect.isclass(value):
        return "\n".join([*lines, f".. autofunction:: {path}", ""])
    lines += [f".. autoclass:: {path}"]
    members = own_members(value)
    if members:
        lines += [f"   :members: {', '.join(members)}"]
    return "\n".join([*lines, ""])


def own_members(kind: type) -> list[str]:
    """Return the public methods and properties that this package wrote, inherited ones included."""
    found = []
    for name in dir(kind):
        if name.startswith("_"):
            continue
        home = next(each for each in kind.__mro__ if name in vars(each))
        value = vars(home)[name]
        is_code = callable(value) or isinstance(value, property | classmethod | staticmethod)
        if home.__module__.startswith("rareclass.") and is_code and not inspect.isclass(value):
            found.append(name)
    return found
