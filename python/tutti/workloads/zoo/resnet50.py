"""ResNet-50 for images of 224 x 224."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.workloads.model import Model, ModelLayer, convolution, linear

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = (
    "He et al. 2016, table 1; v1 has the stride of a stage in the first 1 x 1 convolution, v1.5 in "
    "the 3 x 3. Biases and normalisation are left out: 25,502,912 weights in 54 layers"
)

_STAGES = ((64, 3, 56), (128, 4, 56), (256, 6, 28), (512, 3, 14))
"""Width, blocks, and input pixels along a side."""


def build(argument: str | None) -> Model:
    """Builds the model; the argument is `v1.5` (the default) or `v1`."""
    later = argument in (None, "v1.5")
    layers = [
        convolution("conv1", channels=3, filters=64, kernel=7, size=224, stride=2, first=True)
    ]
    channels = 64
    for stage, (width, blocks, size) in enumerate(_STAGES, start=2):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 2 else 1
            side = size if block == 0 else size // (2 if stage > 2 else 1)
            layers += _block(
                f"conv{stage}_{block + 1}", (channels, width), side, stride, later=later
            )
            channels = 4 * width
    layers.append(linear("fc", channels, 1000))
    return Model(
        name="resnet50" if later else "resnet50:v1",
        source=SOURCE,
        layers=tuple(layers),
        samples="images",
    )


def _block(
    name: str, widths: tuple[int, int], size: int, stride: int, *, later: bool
) -> Iterator[ModelLayer]:
    """Yields a bottleneck: 1 x 1, 3 x 3, 1 x 1, and a projection if the shape changes."""
    channels, width = widths
    first, second = (1, stride) if later else (stride, 1)
    if channels != 4 * width:
        yield convolution(
            f"{name}_projection",
            channels=channels,
            filters=4 * width,
            kernel=1,
            size=size,
            stride=stride,
        )
    yield convolution(
        f"{name}_1", channels=channels, filters=width, kernel=1, size=size, stride=first
    )
    middle = -(-size // first)
    yield convolution(
        f"{name}_2", channels=width, filters=width, kernel=3, size=middle, stride=second
    )
    yield convolution(
        f"{name}_3", channels=width, filters=4 * width, kernel=1, size=-(-middle // second)
    )
