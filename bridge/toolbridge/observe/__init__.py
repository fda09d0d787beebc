"""Observing: what happened, for whoever keeps count. Observers are told; they decide nothing."""
