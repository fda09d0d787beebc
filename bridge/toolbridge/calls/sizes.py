"""Sizes as people and models read them."""

from __future__ import annotations


def size_text(size: int) -> str:
    """`512 B`, `3.1 KB`, `34 KB`, `2.5 MB`: of 1024, with a decimal below ten, as guest code shows handles."""
    if size < 1024:
        return f"{size} B"
    amount, unit = size / 1024, "KB"
    if round(amount) >= 1024:
        amount, unit = amount / 1024, "MB"
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"
