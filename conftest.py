"""What pytest collects: modules that need PyTorch only where it is installed."""

import importlib.util
from pathlib import Path

TORCH = importlib.util.find_spec("torch") is not None
_BATTERY = Path("leakviz") / "battery"

collect_ignore = (
    [] if TORCH else [str(_BATTERY / f"{name}.py") for name in ("features", "models", "training")]
)


def pytest_report_header():
    """Say what is not tested."""
    if TORCH:
        return None
    return "PyTorch is not installed (extra: battery): the pipeline that builds batteries is not tested"
