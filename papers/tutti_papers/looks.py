"""Styles of the compared designs: a design has the same colour in every drawing of its paper."""

from __future__ import annotations

from tutti.view.palette import styles_in_order

ACE = styles_in_order(("no_overlap", "comm_opt", "comp_opt", "ace", "ideal"))
"""The configurations of ACE."""
ACE_ENDPOINTS = {
    "baseline": ACE["comm_opt"],
    "ace": ACE["ace"],
    "ace_ample": ACE["comp_opt"],
}
"""The endpoints of ACE's all_reduce alone."""

ARIES = styles_in_order(("mesh", "torus", "flattened_butterfly", "adapt_noc", "aries"))
"""The networks of ARIES."""

SMART = styles_in_order(
    (
        "baseline",
        "SFO_Greedy, SVT",
        "SFO_Greedy, PVT",
        "SFO_Complete, BI=6",
        "SFI_Complete",
        "SFO_Complete, BI=8",
        "SFI_Greedy, Prio=Local",
        "SFI_Complete, Prio=Local",
        "fully connected",
        "SFI_Greedy, Prio=Bypass",
        "baseline without collectives",
        "SMART",
        "SFO_Complete, BI=3",
        "SFO_Complete, BI=4",
        "SFO_Complete, BI=10",
        "SFI_Greedy, Prio=Bypass, merge=buffered, ejection cycle",
        "SFI_Complete, ejection cycle",
    )
)
"""The meshes of SMART."""
