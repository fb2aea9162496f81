"""Memory of this process: what it holds, and the most that it has held.

Linux keeps a high-water mark and lets it be set back. Elsewhere ``ru_maxrss`` has to do, which can
only grow; where there is not even that, nothing is known.
"""

import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def held_now() -> int | None:
    """Bytes held, from which a peak is counted; sets the high-water mark back to it."""
    try:
        _RESET.write_text("5")
    except OSError:
        return _most()
    return _of_status("VmRSS")


def peak() -> int | None:
    """Most bytes held since `held_now`, or where that cannot be told, since the beginning."""
    found = _of_status("VmHWM")
    return _most() if found is None else found


def _of_status(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(s.split()[1]) for s in lines if s.startswith(f"{name}:")), None)


def _most() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # In KiB on Linux and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
