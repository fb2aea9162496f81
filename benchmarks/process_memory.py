"""How much memory this process holds, and the most it has held since a moment of our choosing.

Linux keeps the high-water mark of a process in /proc/self/status and lets it be reset, so that the
peak of a fit is not hidden behind the peak of loading the data. Elsewhere ``ru_maxrss`` has to do,
which can only grow: then a peak below that of loading reads as zero.
"""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def resident() -> int:
    """Bytes that this process has in memory now."""
    return _status("VmRSS") or _maxrss()


def resident_of(pid: int) -> int:
    """Bytes that another process has in memory now; 0 where that is not told."""
    return _status("VmRSS", Path(f"/proc/{pid}/status"))


def reset_peak() -> bool:
    """Start the high-water mark anew from what is held now; False where that cannot be done."""
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def peak() -> int:
    """Most bytes that this process has held since `reset_peak`, or since it started."""
    return _status("VmHWM") or _maxrss()


def machine_bytes() -> int:
    """Memory that is free for use on this machine; 0 where that is not known."""
    return _status("MemAvailable", Path("/proc/meminfo"))


def _status(name: str, file: Path = _STATUS) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(s.split()[1]) for s in lines if s.startswith(f"{name}:")), 0)


def _maxrss() -> int:
    # In KiB on Linux and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
