"""Errors of workloads, and of the endpoints that carry their collectives."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import Kind, TuttiError

__all__ = ["EndpointError", "TraceError", "WorkloadError"]


class WorkloadError(TuttiError, ValueError):
    """A workload that cannot be: a model, a training loop, a program, an array."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_model": Kind("No model has that name.", "`tutti train list` shows all"),
        "model_argument": Kind("What follows a model's colon does not suit it."),
        "torch_missing": Kind("PyTorch is not installed.", "pip install 'tutti[torch]'"),
        "torch_model": Kind(
            "A model of PyTorch that cannot be read.",
            "does `torch.export.export` take it, with inputs of these shapes?",
        ),
        "layer_size": Kind(
            "A layer of a size that there is not.", "shapes count elements: 1 or more"
        ),
        "no_layers": Kind("A model without layers.", "name at least one"),
        "no_iterations": Kind("A run of no iterations.", "ask for at least one"),
        "no_top": Kind("All layers come before the embeddings are needed."),
        "no_pipeline": Kind("A pipeline without a second stage, or without micro-batches."),
        "embedding_in_pipeline": Kind("Embedding tables of a stage of a pipeline."),
        "does_not_divide": Kind(
            "A parallelism that divides neither NPUs nor what it should.",
            "each kind takes whole rings: tensor, expert, data, and the last for the pipeline",
        ),
        "too_few_layers": Kind("More stages than layers.", "fewer stages, or a deeper model"),
        "tables_divided": Kind("A model whose embedding tables stand in the way of a parallelism."),
        "unknown_layer": Kind("Times of layers that a model does not have, or lacks."),
        "program": Kind("The tasks make no program."),
        "empty": Kind("A program without tasks."),
        "no_such_task": Kind("A task waits for one that is not there.", "tasks count from 0"),
        "circle": Kind("Tasks wait for each other in a circle.", "drop one of the dependencies"),
        "no_bytes": Kind(
            "A collective that moves nothing.", "give it at least 1 B, or leave it out"
        ),
        "empty_array": Kind("A systolic array without processing elements."),
        "no_arrays": Kind("No systolic array at all, among those that share a product."),
        "negative_time": Kind("A collective that ends before it begins."),
        "no_samples": Kind("Layers are timed over no samples."),
        "nothing_left": Kind(
            "A roofline has nothing to compute with.",
            "give `left`, as `configuration.compute(npu)` says it",
        ),
        "unknown_dataflow": Kind("No dataflow has that name."),
        "unknown_order": Kind("Collectives have no such order.", "`lifo` or `fifo`"),
        "no_such_npu": Kind("An NPU that was not simulated.", "one stands for all, number 0"),
    }


class EndpointError(TuttiError, ValueError):
    """An endpoint that cannot be, or that cannot carry a collective."""

    kinds: ClassVar[dict[str, Kind]] = {
        "empty": Kind("Pieces of no bytes.", "give them at least 1 B"),
        "nothing_left": Kind("Communication takes all of an NPU.", "set less aside for it"),
        "no_chunks": Kind("Nothing may be under way.", "allow at least one chunk"),
        "no_sms": Kind("Nobody moves the data.", "set `sms` to at least 1"),
        "too_few_fsms": Kind("Fewer state machines than phases.", "one for each phase at least"),
        "wrong_fsms": Kind("State machines for other phases than there are."),
        "no_fsm": Kind("A phase without a state machine.", "one for each phase at least"),
        "wrong_shares": Kind(
            "Shares for other partitions than the scratchpad has.",
            "one for each phase, and one for what is done",
        ),
        "partition_too_small": Kind(
            "A partition of the scratchpad holds no chunk.", "enlarge `sram`, or shorten `chunk`"
        ),
    }


class TraceError(TuttiError, ValueError):
    """A trace of another tool that cannot be used."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unreadable": Kind("The file cannot be read.", "is the path right?"),
        "too_large": Kind("The file is too large to be a trace."),
        "truncated": Kind("The file ends within a message.", "was it copied to its end?"),
        "malformed": Kind("A message that is none of a Chakra trace."),
        "missing_rank": Kind("The file of a rank is missing.", "files are <prefix>.<rank>.et"),
        "unknown_type": Kind("A node of a type that there is not."),
        "unknown_collective": Kind("A collective that there is not."),
        "attribute_type": Kind(
            "An attribute of a type that cannot be read as what it should say.",
            "numbers may be of any numeric type",
        ),
        "missing_attribute": Kind("A node lacks what it needs."),
        "no_bytes": Kind("A collective that moves nothing.", "is the size in another attribute?"),
        "same_number": Kind("Two nodes of a file have one number."),
        "missing_node": Kind("A node waits for one that is not there."),
        "empty_trace": Kind("The trace of a rank does nothing."),
        "other_ranks": Kind(
            "Traces of other ranks than there are NPUs.", "one file for each NPU of the network"
        ),
        "unknown_group": Kind(
            "A group of NPUs that there is not, or that stands on no whole rings.",
            "groups are those of whole dimensions of the network",
        ),
        "not_carried": Kind("What a torus does not carry out."),
        "circle": Kind("Nodes wait for each other.", "drop one of the dependencies"),
    }
