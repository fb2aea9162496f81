"""``rareclass export``: a model file as a model of ONNX."""

from pathlib import Path
from typing import Annotated

import typer

from rareclass.cli.door import (
    OVERWRITE_OPTION,
    check_new,
    exit_codes_for_faults,
    file_or_url,
)
from rareclass.cli.screen import output


@exit_codes_for_faults
def export(
    model: Annotated[Path, typer.Argument(help="Model file of rareclass fit.", parser=file_or_url)],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="ONNX file to write.", parser=file_or_url),
    ],
    overwrite: Annotated[bool, OVERWRITE_OPTION] = False,
) -> None:
    """Write a model as ONNX: scored without Python, double precision, one input a column."""
    from rareclass.model.to_onnx import export_file
    from rareclass.opening import load

    check_new(out, "--out", overwrite)
    found = export_file(load(model), out)
    inputs = ", ".join(each.name for each in found.graph.input)
    outputs = ", ".join(each.name for each in found.graph.output)
    output().print(f"Wrote {out}. Inputs: {inputs}. Outputs: {outputs}.", markup=False)
