"""What the audit is worth on texts it has not learned from: `python -m trust.judge_audit` in tests/.

For each author who did not know the rules, the weights are fitted without any text of that author and without a quarter
of the real servers; then what was left out is counted, for several thresholds. By author and by server, never by
single texts: one author's texts are alike, and so are one server's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from toolbridge.trust import audit_weighing
from toolbridge.trust.audit_text import OtherTools, findings_in
from toolbridge.trust.audit_weights import SCALE, Weights
from trust.audit_figures import OTHER_TOOLS
from trust.fit_audit import MARGIN, Sample, authors, examples, fit, servers

LEFT_OUT = ("independent", "d1", "d2", "d3", "d4", "d5")
MARGINS = (0.0, 0.25, MARGIN, 0.75, 1.0, 1.5)
COUNTED = ("attacks", "harmless", "servers")
OTHERS = OtherTools(frozenset(name for names in OTHER_TOOLS.values() for name in names), frozenset(OTHER_TOOLS))


def _found(samples: Iterable[Sample], weights: Weights) -> int:
    audit_weighing.weights = lambda: weights  # pyright: ignore[reportAttributeAccessIssue]
    return sum(bool(findings_in(sample.text, OTHERS)) for sample in samples)


def judge() -> list[str]:
    """A line for each author and threshold."""
    written, listed = authors(), servers()
    names = list(listed)
    lines: list[str] = []
    total: Counter[tuple[float, str]] = Counter()
    for number, author in enumerate(LEFT_OUT):
        outside = names[number :: len(LEFT_OUT)]
        learned = [sample for name, samples in written.items() if name != author for sample in samples]
        learned += [sample for name in names if name not in outside for sample in listed[name]]
        base = fit([*learned, *examples()], margin=0)
        sets = {
            "attacks": [sample for sample in written[author] if sample.is_attack],
            "harmless": [sample for sample in written[author] if not sample.is_attack],
            "servers": [sample for name in outside for sample in listed[name]],
        }
        for margin in MARGINS:
            weights = Weights(base.threshold + round(SCALE * margin), base.of)
            counts = {name: (_found(samples, weights), len(samples)) for name, samples in sets.items()}
            shares = ", ".join(f"{name} {100 * found / of:.1f} %" for name, (found, of) in counts.items())
            lines.append(f"{author} left out, margin {margin}: {shares}")
            for name, (found, of) in counts.items():
                total[margin, name] += found
                total[margin, f"all {name}"] += of
    for margin in MARGINS:
        shares = ", ".join(
            f"{name} {100 * total[margin, name] / total[margin, f'all {name}']:.1f} %" for name in COUNTED
        )
        lines.append(f"all, margin {margin}: {shares}")
    return lines


if __name__ == "__main__":
    sys.stdout.write("\n".join(judge()) + "\n")
