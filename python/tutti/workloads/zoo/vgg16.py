"""VGG-16 for images of 224 x 224."""

from __future__ import annotations

from tutti.workloads.model import Model, ModelLayer, convolution, linear

SOURCE = (
    "Simonyan and Zisserman 2015, table 1, configuration D; biases are left out: 138,344,128 "
    "weights in 16 layers"
)

_STAGES = ((224, (64, 64)), (112, (128, 128)), (56, (256,) * 3), (28, (512,) * 3), (14, (512,) * 3))
"""Pixels along a side, and the filters of each convolution."""


def build(argument: str | None) -> Model:
    """Builds the model, which has no argument."""
    del argument
    layers: list[ModelLayer] = []
    channels = 3
    for stage, (size, widths) in enumerate(_STAGES, start=1):
        for index, filters in enumerate(widths, start=1):
            layers.append(
                convolution(
                    f"conv{stage}_{index}",
                    channels=channels,
                    filters=filters,
                    kernel=3,
                    size=size,
                    first=not layers,
                )
            )
            channels = filters
    layers += [
        linear("fc6", 512 * 7 * 7, 4096),
        linear("fc7", 4096, 4096),
        linear("fc8", 4096, 1000),
    ]
    return Model(name="vgg16", source=SOURCE, layers=tuple(layers), samples="images")
