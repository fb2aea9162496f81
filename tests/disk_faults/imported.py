"""What commands import as they run, which is most of their time on so few rows.

The process that forks the killed ones imports this file. It must not read a table: threads of
polars do not come along with a fork.
"""

import matplotlib.pyplot  # noqa: F401
import numba
from typer.testing import CliRunner

import rareclass.audit.audit_table
import rareclass.compare.leaderboard
import rareclass.ensemble.folds
import rareclass.ensemble.identifiers
import rareclass.ensemble.importances
import rareclass.ensemble.missed_cases
import rareclass.ensemble.rare_classifier
import rareclass.ensemble.workers
import rareclass.fit.mibc_method
import rareclass.fit.training
import rareclass.hunt.files
import rareclass.hunt.hunting
import rareclass.hyperball
import rareclass.model.score_file
import rareclass.model.to_onnx
import rareclass.online.oam
import rareclass.opening
import rareclass.report.model_report
import rareclass.review.reviewing
import rareclass.stream.loop
from rareclass.cli.app import app

CliRunner().invoke(app, ["fit", "--help"])
numba.njit(lambda x: x)(1)
