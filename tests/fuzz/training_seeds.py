"""Training steps to mutate, and their models, traces and times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seeds import EXAMPLES, Target, example

if TYPE_CHECKING:
    from pathlib import Path

SCALESIM = (
    b"layer,h,w,fh,fw,c,f,s,\nconv1,32,32,3,3,3,16,1,\nDP2,16,16,3,3,16,1,1,\ngemm,64,32,16,\n"
)
MODEL: dict[str, Any] = {
    "name": "m",
    "layers": [
        {
            "name": "a",
            "gemms": [{"m": 8, "n": 8, "k": 8}],
            "parameters": 64,
            "inputs": 64,
            "outputs": 64,
            "first": True,
        }
    ],
}


def training_step(name: str, **more: Any) -> bytes:
    """The file of a training step of a model on a small torus."""
    rings = [{"name": "local", "nodes": 2, "rate": "200 GB/s", "latency": "72 ns"}]
    training: dict[str, Any] = {"batch": 4, "torus": {"efficiency": 0.94, "rings": rings}}
    return example("10*/training.toml", model=name, **training, **more)


def targets(made: Path) -> list[Target]:
    """Steps of each kind of model; `made` is the folder that `made.make` has written."""
    traces = {f"t.{rank}.et": (made / f"t.{rank}.et").read_bytes() for rank in range(2)}
    groups = json.dumps({"all": [0, 1]}).encode()
    return [
        *_astrasim(traces, groups),
        Target("train", {"f.toml": training_step("gnmt")}, _STEP),
        _step("train chakra", training_step("chakra:t"), {"t.json": groups} | traces),
        _step("train kineto", training_step("kineto:rank*.json"), profiles()),
        Target("kineto", profiles(), ("trace", "run", "rank0.json", "--algorithm", "ring")),
        _step("scalesim", training_step("scalesim:s.csv"), {"s.csv": SCALESIM}),
        _step("model", training_step("file:m.json"), {"m.json": json.dumps(MODEL).encode()}),
        _times(),
    ]


_STEP = ("train", "run", "f.toml", "--out", "o")


def _step(name: str, file: bytes, more: dict[str, bytes]) -> Target:
    """A step whose other files are mutated."""
    return Target(name, {"f.toml": file} | more, _STEP, fixed=("f.toml",))


def _astrasim(traces: dict[str, bytes], groups: bytes) -> list[Target]:
    folder = EXAMPLES / "13_astrasim"
    files = {
        name: (folder / name).read_bytes() for name in ("Ring.json", "Ring_8.yml", "two_layers.txt")
    }
    run = ("--network", "Ring_8.yml", "--system", "Ring.json", "--out", "o")
    pair = {
        "Ring_8.yml": files["Ring_8.yml"].replace(b"[ 8 ]", b"[ 2 ]"),
        "Ring.json": files["Ring.json"],
        "g.json": groups,
    }
    from_traces = ("train", "from-astrasim", "t", *run, "--groups", "g.json")
    return [
        Target("astrasim", files, ("train", "from-astrasim", "two_layers.txt", *run)),
        Target("chakra", traces | pair, from_traces),
    ]


def _times() -> Target:
    """A step with measured times of layers."""
    rows = (
        "layer,forward,input_gradient,weight_gradient",
        *(f"{name},1 us,2 us,2 us" for name in ("conv1", "DP2", "gemm")),
    )
    step = training_step("scalesim:s.csv", compute={"model": "measured", "file": "times.csv"})
    files = {"f.toml": step, "s.csv": SCALESIM, "times.csv": "\n".join(rows).encode()}
    return Target("times", files, _STEP, fixed=("f.toml", "s.csv"))


def profiles() -> dict[str, bytes]:
    """Returns the profiles of PyTorch of an example, for two ranks."""
    found = {}
    for rank in range(2):
        name = f"rank{rank}.json"
        text = (EXAMPLES / "28_pytorch_profile" / name).read_text("utf-8")
        for of_eight, of_two in (
            ('"world_size": 8', '"world_size": 2'),
            ('"Group size": 8', '"Group size": 2'),
            ("[0, 1, 2, 3, 4, 5, 6, 7]", "[0, 1]"),
        ):
            text = text.replace(of_eight, of_two)
        found[name] = text.encode()
    return found
