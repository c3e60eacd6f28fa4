"""The page of algorithms that MPI libraries name, from the catalogue."""

from __future__ import annotations

from tutti.measured.predict.catalogue import KnownAlgorithm, known_algorithms

_HEAD = """# Algorithms of MPI libraries

What the algorithms that libraries and benchmarks name are in tutti's notation, by collective.
`tutti advise` and `tutti calibrate --joint` accept these names, and those of tutti.
`make reference` writes this page from `python/tutti/measured/predict/libraries.toml`.

- Names are normalised: without `_ompi`, `_mpich`, `_over` (over point-to-point messages) and
  Fujitsu's `default-`, and with `_` for `-`.
- `segmented_over_16384` has segments of 16,384 bytes. `BINE-L-UTOFU-4096-6` has segments of 4,096
  bytes over six network interfaces, past MPI.
- Libraries: O is Open MPI, M MPICH, C Cray MPICH, F Fujitsu MPI, P PICO. Upper-case names are
  PICO's on Fugaku.
- *inferred*: stages inferred from names and measured times, since the library does not document
  the algorithm. tutti has no schedule for it.
- *on a torus*: Fujitsu MPI runs another algorithm of that name, whose stages are inferred.
- *copies*: bytes copied in addition to the messages, as a fraction of the vector.
- *folds*: ranks beyond a power of two hand over their vector first.
"""


def libraries_page() -> str:
    """Returns the page, in Markdown."""
    known = list({id(one): one for one in known_algorithms().values()}.values())
    parts = [_HEAD]
    for collective in dict.fromkeys(one.collective for one in known):
        same = [one for one in known if one.collective == collective]
        rows = [_row(name, one) for one in same for name in one.names]
        table = ["| name | in | tutti | remarks |", "|---|---|---|---|", *rows]
        parts.append(f"## {collective}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _row(name: str, known: KnownAlgorithm) -> str:
    libraries = " ".join(library[0] for library in known.libraries)
    notation = f"`{known.notation}`" if known.notation else "none"
    remarks = [
        "inferred" if known.notation is None else "",
        "on a torus" if known.notation and known.torus_form else "",
        f"copies {known.copied:g}" if known.copied else "",
        f"{known.pieces} messages per step" if known.pieces > 1 else "",
        "folds" if known.folds else "",
        "waits for requests" if known.synchronous else "",
        f"stages of {known.stages_of}" if known.stages_of else "",
    ]
    remark = "; ".join(filter(None, remarks))
    return f"| `{name}` | {libraries} | {notation} | {remark} |"
