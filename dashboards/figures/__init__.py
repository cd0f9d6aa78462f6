"""Figures: answers in, HoloViews elements out."""
