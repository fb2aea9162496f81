"""Model files made beside releases of packages whose parts are not installed here."""

import io
import json
import zipfile
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rareclass.errors import InputError
from rareclass.model.metadata_text import from_text
from rareclass.model.skops_io import skops_io

_SCHEMA = "schema.json"
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def of_another_release(path: Path, archive: bytes, types: Iterable[str]) -> InputError | None:
    """The error of a file that holds a type which its package does not have here, if one is.

    `types` are full names of trusted types: their modules are imported. What the file was made
    beside is taken from its metadata, where these can be read.
    """
    absent = next((name for name in types if not _is_here(name)), None)
    if absent is None:
        return None
    package = absent.partition(".")[0]
    package = _DISTRIBUTIONS.get(package, package)
    wanted = f"{package} {_versions(archive).get(package, '')}".rstrip()
    try:
        here = f"which is not in {package} {version(package)}, the release that is installed"
    except PackageNotFoundError:
        here = f"and {package} is not installed"
    return InputError(
        f"{path} was made beside {wanted}: it holds {absent}, {here}.",
        f"Install {wanted}, or fit again.",
    )


def _is_here(name: str) -> bool:
    module, _, kind = name.rpartition(".")
    try:
        return hasattr(import_module(module), kind)
    except ImportError:
        return False


def _versions(archive: bytes) -> dict[str, Any]:
    """Releases of packages by the metadata of a file of skops; none where these are not sound."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as whole:
            schema = json.loads(whole.read(_SCHEMA))
        alone, metadata = io.BytesIO(), schema["content"]["metadata"]
        with zipfile.ZipFile(alone, "w") as part:
            part.writestr(_SCHEMA, json.dumps(schema | metadata))
        found = from_text(skops_io().loads(alone.getvalue(), trusted=[]))["versions"]
        return {package: each[:40] for package, each in found.items()}
    except Exception:  # the content of a file can be wrong in any way
        return {}
