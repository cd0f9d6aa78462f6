"""What tests of the page share: the published battery and what the core says at every stop."""

from pathlib import Path

import pytest

import leakviz

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def battery():
    return leakviz.load_battery("published")


@pytest.fixture(scope="session")
def every_stop(battery):
    """Return the core's answer at every stop of the two sliders, as the issue names them."""
    gates, taus = leakviz.stops("0.80", "1.00", "0.005"), leakviz.stops("0.20", "1.00", "0.005")
    return leakviz.sweep_rule(battery, gates=gates, taus=taus)
