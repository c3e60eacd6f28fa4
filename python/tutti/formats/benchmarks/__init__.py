"""Layouts of the output of OSU micro-benchmarks, IMB and nccl-tests, and prefixes of log lines.

:mod:`tutti.formats.measurements` finds the runs of a log and reads them with these modules.

Sizes follow the convention of tutti and nccl-tests. For all_reduce, reduce and broadcast, the size
is one rank's buffer. For all_gather, reduce_scatter, gather, scatter and all_to_all, it is the sum
of all shards. OSU and IMB report the shard of one rank for all_gather, gather, scatter and
all_to_all: such rows require the number of ranks.
"""
