"""The device that a command works on: it is looked for before anything is read."""

from dataclasses import replace
from typing import Any

from rareclass.errors import InputError
from rareclass.model.model_file import ModelFile
from rareclass.rows.devices import Device, find_device


def device_at(name: str | None) -> Device | None:
    """The device that ``--device`` names; None is the processor.

    Raises `InputError` on a name that means none, without CuPy, and where CUDA has no such device.
    """
    try:
        device = find_device(name)
        if device is not None:
            device.free_bytes()
    except ImportError as error:
        raise InputError(
            f"--device {name}: CuPy is not installed.",
            'Install it: pip install "rareclass[gpu]" (for CUDA 12; other versions have wheels of '
            "their own, https://docs.cupy.dev).",
        ) from error
    except InputError as error:
        raise InputError(
            f"--device: {error.message}", "Leave --device out to work on the processor."
        ) from error
    except ValueError as error:
        raise InputError(
            f"--device {name} names no device.", "Give cuda, or cuda:1 for the second one."
        ) from error
    return device


def scoring_on(content: ModelFile, device: Device | None) -> ModelFile:
    """What a model file holds, its kernel to be worked out on a device.

    Raises `InputError` for a model that has no kernel, and for one of sparse rows.
    """
    if device is None:
        return content
    model: Any = content.model
    if not hasattr(model, "device"):
        raise InputError(
            f"--device {device}: {type(model).__name__} works out no kernel there.",
            "Leave --device out. Models of --method rankrc and ordinal-rankrc have one.",
        )
    return replace(content, model=model.set_params(device=device))


def check_dense(device: Device | None, is_sparse: bool) -> None:
    """Raise `InputError` for encoded rows that are sparse, which no device works on."""
    if device is not None and is_sparse:
        raise InputError(
            f"--device {device} works on dense rows, and these are sparse once they are encoded.",
            "Leave --device out.",
        )
