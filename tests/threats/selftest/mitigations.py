"""All mitigations that the self-test switches off, one after another."""

from __future__ import annotations

from threats.selftest.component_mitigations import COMPONENT_MITIGATIONS
from threats.selftest.sandbox_mitigations import SANDBOX_MITIGATIONS
from threats.selftest.serve_mitigations import SERVE_MITIGATIONS
from threats.selftest.server_mitigations import SERVER_MITIGATIONS
from threats.selftest.switched_off import SwitchedOff
from threats.selftest.trust_mitigations import TRUST_MITIGATIONS

MITIGATIONS: tuple[SwitchedOff, ...] = tuple(
    sorted(
        (
            *TRUST_MITIGATIONS,
            *SERVER_MITIGATIONS,
            *SERVE_MITIGATIONS,
            *SANDBOX_MITIGATIONS,
            *COMPONENT_MITIGATIONS,
        ),
        key=lambda each: int(each.threat[1:]),
    )
)
