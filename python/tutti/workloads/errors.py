"""Errors of workloads and traces."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class WorkloadError(TuttiError, ValueError):
    """Raised for an invalid workload: a model, a training loop, a program or an array."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_model": Kind("The model is unknown.", "`tutti train list` lists the models"),
        "model_argument": Kind("The argument after the colon of the model is invalid."),
        "torch_model": Kind(
            "The PyTorch model cannot be read.",
            "does `torch.export.export` accept it, with inputs of these shapes?",
        ),
        "layer_size": Kind("The size of a layer is invalid.", "shapes count elements: 1 or more"),
        "experts": Kind("The layer of experts, its routing or its placement is invalid."),
        "no_layers": Kind("The model has no layers.", "name at least one"),
        "no_iterations": Kind("The run has no iterations.", "use at least one"),
        "no_top": Kind("The model has no layers after its embeddings."),
        "no_pipeline": Kind("The pipeline has a single stage, or no micro-batches."),
        "embedding_in_pipeline": Kind("A pipeline stage contains embedding tables."),
        "does_not_divide": Kind(
            "The degrees of parallelism do not divide the NPUs or the model.",
            "the product of the degrees is the number of NPUs; each kind of parallelism spans "
            "complete dimensions, in the order of `order`; micro-batches divide the batch",
        ),
        "too_few_layers": Kind(
            "The pipeline has more stages than the model has layers.",
            "use fewer stages, or a deeper model",
        ),
        "tables_divided": Kind("The model's embedding tables do not support this parallelism."),
        "unknown_layer": Kind("Times name a layer that the model does not have, or lack one."),
        "program": Kind("The tasks do not form a program."),
        "empty": Kind("The program has no tasks."),
        "no_such_task": Kind("A task depends on a task that does not exist.", "tasks count from 0"),
        "cyclic_dependency": Kind(
            "Tasks form a cyclic dependency.", "remove one of the dependencies"
        ),
        "trace_column": Kind("The columns of a trace have different lengths."),
        "trace_value": Kind("An operation of a trace has an invalid value."),
        "trace_size": Kind("The trace has too many operations.", "use fewer than 2^31"),
        "trace_collective": Kind(
            "The ranks of a trace disagree on a collective, or it has not been replaced.",
            "`--algorithm NAME` replaces collectives by the messages of an algorithm",
        ),
        "goal": Kind("The text is not GOAL.", "see the reference page of the format"),
        "no_bytes": Kind(
            "The payload of a collective is empty.",
            "give it at least 1 B, or remove it",
        ),
        "too_few": Kind(
            "A pipeline has fewer micro-batches than stages, or one stage.",
            "raise `micro_batches`",
        ),
        "no_context": Kind("Context parallelism needs a model with attention."),
        "no_decoder": Kind("Memory and plans need a decoder, such as llama3_70b."),
        "no_plan": Kind("No plan of a training step has the batch, or fits the memory."),
        "calibration": Kind("Measured steps do not calibrate the GPU of a plan."),
        "no_experts": Kind("A setting of experts needs a model with experts.", "remove it"),
        "no_precision": Kind("The GPU has no arithmetic of the precision."),
        "no_overlap": Kind(
            "A ring exchange needs the time of attention without its projections.",
            "use `cp_comm_type = all_gather`, or a compute model",
        ),
        "no_tensor": Kind("Sequence parallelism needs tensor parallelism.", "raise `tensor`"),
        "not_multiple": Kind("The micro-batches are not a multiple of the interleaved stages."),
        "interleaved_gpipe": Kind("GPipe has one model chunk per stage.", "use `1f1b`"),
        "wrong_chunks": Kind("The model chunks of a pipeline do not divide the layers."),
        "embedding": Kind("Embedding tables are looked up once per iteration, without a pipeline."),
        "pipeline": Kind("The pipeline is invalid."),
        "wrong_order": Kind("The order of the kinds of parallelism is incomplete."),
        "not_in_flows": Kind(
            "A step in flows has no endpoint, no torus, and no utilisation over time.",
            "use `detail = packets`",
        ),
        "unknown_detail": Kind("The level of detail is unknown."),
        "unknown_message": Kind("The kind of a message is unknown."),
        "empty_array": Kind("The systolic array has no processing elements."),
        "no_arrays": Kind("The product has no systolic arrays."),
        "negative_time": Kind("A collective ends before it starts."),
        "no_samples": Kind("Layers are timed over zero samples."),
        "nothing_left": Kind(
            "The roofline has no compute throughput.",
            "set `left` to `configuration.compute(npu)`",
        ),
        "unknown_dataflow": Kind("The dataflow is unknown."),
        "unknown_order": Kind("The order of collectives is unknown.", "`lifo` or `fifo`"),
        "no_flows": Kind(
            "The platform of the step has neither flows nor packets nor a mesh.",
            "use a platform with a topology",
        ),
        "unfixed_iterations": Kind(
            "A search compares steps with different numbers of iterations.",
            "set `iterations` to a number, for example with `--set iterations=2`",
        ),
        "no_such_collective": Kind(
            "An algorithm is chosen for a collective that the step does not have."
        ),
        "slowdowns": Kind(
            "Slowdowns of NPUs do not fit the step.", "give each NPU a factor of at least 1"
        ),
        "disturbances": Kind(
            "Disturbances of a step are out of range, or do not fit its network.",
            "`tutti train disturb --help` lists the disturbances",
        ),
        "no_such_npu": Kind("The NPU was not simulated.", "number 0 represents all NPUs"),
    }


class TraceError(TuttiError, ValueError):
    """Raised for an invalid trace of another tool."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unreadable": Kind("The file cannot be read.", "is the path right?"),
        "too_large": Kind("The file is too large to be a trace."),
        "truncated": Kind("The file ends within a message.", "was it copied completely?"),
        "malformed": Kind("A message is not part of a Chakra trace."),
        "missing_rank": Kind(
            "The file of a rank is missing, or there are two.", "files are <prefix>.<rank>.et"
        ),
        "no_profile": Kind("The profile of a rank is missing.", "a job has a file per rank"),
        "same_rank": Kind("Two profiles are of the same rank."),
        "not_a_profile": Kind(
            "The JSON is not a profile of PyTorch.", "other Chrome traces have no GPU operations"
        ),
        "process_group": Kind("A process group of a profile is unknown, or contradicts the job."),
        "no_gpu_activity": Kind(
            "The profile has no GPU activity.",
            "give the profiler `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`",
        ),
        "unknown_type": Kind("The type of a node is unknown."),
        "unknown_collective": Kind("The collective is unknown."),
        "attribute_type": Kind(
            "The type of an attribute is invalid.",
            "numbers may be of any numeric type",
        ),
        "missing_attribute": Kind("A node lacks a required attribute."),
        "no_bytes": Kind(
            "The payload of a collective is empty.",
            "is the size in another attribute?",
        ),
        "same_number": Kind("Two nodes of a file have the same number."),
        "missing_node": Kind("A node depends on a node that does not exist."),
        "empty_trace": Kind("The trace of a rank has no nodes."),
        "other_ranks": Kind(
            "The ranks of the traces do not match the NPUs.",
            "one file for each NPU of the network",
        ),
        "unknown_group": Kind(
            "The process group of a collective is unknown.",
            "`--groups FILE` is a table of groups and their ranks (JSON)",
        ),
        "partial_group": Kind(
            "A process group does not span complete rings.",
            "groups span complete dimensions of the network",
        ),
        "not_carried": Kind("A torus does not support this collective."),
        "cyclic_dependency": Kind(
            "Nodes form a cyclic dependency.", "remove one of the dependencies"
        ),
    }
