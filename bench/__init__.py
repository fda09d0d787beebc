"""Benchmarks: ours beside other ways of doing the same, measured in one run. See README.md."""
