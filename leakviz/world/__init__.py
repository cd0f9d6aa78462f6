"""The two-dimensional teaching world: classes in a plane, one of them called OOD, and a switch."""

from leakviz.world.answers import DETECTORS, LEVELS, WORLD_ALPHAS, score_world, sweep_world
from leakviz.world.draw import FRAME, World, simulate_leak
from leakviz.world.twins import simulate_twins

__all__ = [
    "DETECTORS",
    "FRAME",
    "LEVELS",
    "WORLD_ALPHAS",
    "World",
    "score_world",
    "simulate_leak",
    "simulate_twins",
    "sweep_world",
]
