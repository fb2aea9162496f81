"""Modules that commands import as they run: most of their time on so few rows.

The process that forks the killed ones imports this file. It must not read a table: threads of
polars do not come along with a fork.
"""

from importlib import import_module

import numba
from typer.testing import CliRunner

from rareclass.cli.command import app

_MODULES = (
    "matplotlib.pyplot", "rareclass.audit", "rareclass.compare.leaderboard",
    "rareclass.ensemble.training_rows", "rareclass.ensemble.identifiers",
    "rareclass.ensemble.importances", "rareclass.ensemble.rare_classifier",
    "rareclass.fit.mibc_method", "rareclass.fit.training", "rareclass.hunt.files",
    "rareclass.hunt.hunting", "rareclass.hyperball", "rareclass.model.score_file",
    "rareclass.model.onnx", "rareclass.online.oam", "rareclass.opening",
    "rareclass.report.model_report", "rareclass.review.reviewing", "rareclass.stream.loop",
)  # fmt: skip

for module in _MODULES:
    import_module(module)
CliRunner().invoke(app, ["fit", "--help"])
numba.njit(lambda x: x)(1)
