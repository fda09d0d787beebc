"""The powers of ten by which the guest reads long decimals: more digits than a double has, made at build time."""

from __future__ import annotations

LEAST, MOST = -64, 64
_BITS = 128
_LEAST_EXACT = -27
"""5**27 is the largest that 64 bits hold."""


def power(exponent: int) -> int:
    """The first 128 bits of 10**exponent, scaled by a power of two.

    Rounded down. But a small fraction whose fives fit into 64 bits is rounded up, so that a tie looks like one.
    """
    fives = 5 ** abs(exponent)
    if exponent < 0:
        # The quotient has 128 bits: 1/fives is between 2**-length and twice that.
        return (1 << (fives.bit_length() + _BITS - 1)) // fives + (exponent >= _LEAST_EXACT)
    shift = _BITS - fives.bit_length()
    return fives << shift if shift >= 0 else fives >> -shift


def powers_source() -> str:
    """The powers as a C table, each in two halves, the upper one first."""
    rows = (power(exponent) for exponent in range(LEAST, MOST + 1))
    table = ",\n".join(f"    {{ 0x{row >> 64:016x}, 0x{row & (1 << 64) - 1:016x} }}" for row in rows)
    return (
        f"enum {{ LEAST_POWER = {LEAST}, MOST_POWER = {MOST} }};\n"
        f"static const uint64_t powers_of_ten[][2] = {{\n{table}\n}};\n"
    )
