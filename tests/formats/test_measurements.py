"""CSV files and Parquet as measurements: columns, units, sizes, and rows that are left out."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.measurements import MEASUREMENTS, OMITTED, Measurements, read_measurements

if TYPE_CHECKING:
    from pathlib import Path

HEADING = (
    "system,collective,algorithm,nodes,ranks_per_node,vector_bytes,library,gpu_buffers,notes,job,"
    "date,repetitions,median_us,p10_us,p90_us,min_us\n"
)
ROW = 'one,all_gather,ring_ompi,4,2,4096,OMPI 4.1.6,no,"",j/1,2025-01-01,100,9.5,9,10.5,8.5\n'
TORUS = 'two,all_reduce,default-ring,4x4x4,1,32,FJMPI 4.0.1,no,"",j/2,2025-01-02,50,29,28,30,27\n'


def read(path: Path, text: str, **options: object) -> Measurements:
    path.write_text(text)
    found = read_measurements(path, **options)  # type: ignore[arg-type]
    assert found.rows.schema == pl.Schema(MEASUREMENTS)
    assert found.omitted.schema == pl.Schema(OMITTED)
    return found


def reasons(found: Measurements) -> list[tuple[int, str]]:
    return found.omitted.select("line", "reason").rows()


def test_pico_series(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", HEADING + ROW + TORUS)
    assert found.omitted.is_empty()
    first, second = found.rows.rows(named=True)
    expected = {
        "line": 2,
        "tool": "pico",
        "system": "one",
        "job": "j/1",
        "library": "OMPI 4.1.6",
        "library_algorithm": "ring_ompi",
        "collective": "all_gather",
        "nodes": 4,
        "shape": None,
        "ranks_per_node": 2,
        "ranks": 8,
        "ranks_source": "product",
        "size_bytes": 4096,
        "gpu": False,
        "time_us": 9.5,
        "statistic": "median",
        "low_us": 9.0,
        "high_us": 10.5,
        "min_us": 8.5,
        "repetitions": 100,
        "series": 1,
        "emulated": False,
        "notes": None,
    }
    assert {name: first[name] for name in expected} == expected
    assert (second["nodes"], second["shape"], second["ranks"]) == (64, "4x4x4", 64)


def test_few_columns_are_enough(tmp_path: Path) -> None:
    text = "collective,algorithm,nodes,vector_bytes,mean_ms\nMPI_Bcast,chain,8,64,1.5\n"
    row = read(tmp_path / "t.csv", text).rows.row(0, named=True)
    assert (row["collective"], row["nodes"], row["ranks"]) == ("broadcast", 8, None)
    assert (row["time_us"], row["statistic"], row["low_us"]) == (1500.0, "mean", None)
    row = read(tmp_path / "t.csv", text, ranks=16).rows.row(0, named=True)
    assert (row["ranks"], row["ranks_per_node"], row["ranks_source"]) == (16, 2, "argument")


def test_the_summary_of_pico_is_in_nanoseconds(tmp_path: Path) -> None:
    text = (
        "collective_type,buffer_size,algo_name,datatype,mean,median,min,nnodes,tasks_per_node,"
        "n_iter,percentile_10,percentile_90,timestamp,test_id,CUDA,mpi_lib,mpi_lib_version\n"
        "REDUCE_SCATTER,1024,ring_over,int32,1600,1500,900,4,1,80,1000,2500,t,3,False,OMPI,4.1.6\n"
    )
    row = read(tmp_path / "t.csv", text).rows.row(0, named=True)
    assert (row["collective"], row["time_us"], row["high_us"]) == ("reduce_scatter", 1.5, 2.5)
    assert (row["library"], row["job"], row["gpu"]) == ("OMPI 4.1.6", "t/3", False)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (",9.5,", ",0,", "the time is not a number above 0"),
        (",9.5,", ",-1,", "the time is not a number above 0"),
        (",9.5,", ",nan,", "the time is not a number above 0"),
        (",9.5,", ",inf,", "the time is not a number above 0"),
        (",9.5,", ",fast,", "the time is not a number above 0"),
        (",9.5,", ",,", "the time is not a number above 0"),
        (",9.5,", ",11,", "the median is not between the quantiles"),
        (",9,", ",x,", "low_us is not a number"),
        (",9,", ",nan,", "low_us is not a number above 0"),
        ("all_gather", "all_scan", "unknown collective"),
        (
            ",4,2,",
            ",some,2,",
            "nodes is neither a number nor a shape such as 4x4x4, or is too large",
        ),
        (",4,2,", ",0,2,", "nodes is 0"),
        (",4,2,", ",,2,", "neither the number of nodes nor that of ranks is known: use --ranks N"),
        (",4,2,", ",4,2.5,", "ranks_per_node is not a number"),
        (",4096,", ",40.96,", "size_bytes is not a number"),
        (",4096,", ",,", "the size is unknown"),
        (",no,", ",maybe,", "gpu is neither yes nor no"),
        (",8.5\n", ",8.5,1\n", "has more cells than the heading"),
        (",4096,OMPI 4.1.6,no,,j/1,2025-01-01,100,9.5,9,10.5,8.5", "", "the size is unknown"),
    ],
)
def test_invalid_rows_are_left_out(tmp_path: Path, old: str, new: str, reason: str) -> None:
    plain = ROW.replace('""', "")
    assert old in plain
    text = HEADING + TORUS + plain.replace(old, new, 1)
    found = read(tmp_path / "t.csv", text)
    assert found.rows.height == 1
    assert reasons(found) == [(3, reason)]
    with pytest.raises(ConfigError, match=r"t.csv, line 3: "):
        read_measurements(tmp_path / "t.csv", strict=True)


def test_a_last_row_without_line_ending_is_left_out(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", HEADING + TORUS + ROW[:-3])
    assert reasons(found) == [(3, "the last row has no line ending: it may be truncated")]


def test_duplicates_become_their_median(tmp_path: Path) -> None:
    other = ROW.replace("9.5", "9.1"), ROW.replace("9.5", "10.1")
    found = read(tmp_path / "t.csv", HEADING + ROW + "".join(other) + TORUS)
    assert found.rows.select("time_us", "series", "repetitions").rows() == [
        (9.5, 3, 300),
        (29.0, 1, 50),
    ]
    assert found.merged == 2


def test_ranks_per_node_of_files_that_state_only_nodes(tmp_path: Path) -> None:
    text = "nodes,bytes,algorithm,out_of_place_us,in_place_us\n4,256,ring,42,43\n"
    found = read(tmp_path / "t.csv", text, collective="all_reduce", ranks_per_node=4)
    row = found.rows.row(0, named=True)
    assert (row["ranks"], row["ranks_per_node"], row["ranks_source"]) == (16, 4, "argument")
    assert (row["time_us"], row["statistic"]) == (42.0, "mean")
    found = read(tmp_path / "t.csv", HEADING + ROW, ranks_per_node=4)
    assert found.rows["ranks_per_node"].item() == 2
    frame = "size,avg_latency_us,experiment,nodes\n8,5,cloud/cpu/osu_allgather,4\n"
    found = read(tmp_path / "t.csv", frame, ranks_per_node=2)
    assert found.rows.select("ranks", "ranks_per_node", "size_bytes").row(0) == (8, 2, 64)


def test_the_text_of_an_omitted_row_is_shortened(tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", HEADING + ROW.replace("9.5", "-9.5").replace("one", "x" * 200))
    (remark,) = found.remarks()
    assert remark.endswith(f"({'x' * 80}...)")


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text, problem in (
        ("", "is empty"),
        ("a,b\n1,2\n", "unknown columns"),
        ("nodes,vector_bytes,median_us\n4,8,1\n", "lacks the column collective"),
        ("collective,vector_bytes,median_us\nreduce,8,1\n", "lacks the column nodes"),
        ("collective,nodes,vector_bytes,median\nreduce,4,8,1\n", "no column of times with a unit"),
        ('collective,nodes,vector_bytes,median_us\n"reduce,4,8,1\n"x\n', "quote|cannot be read"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=problem):
            read_measurements(path)
    with pytest.raises(ConfigError, match="no such file"):
        read_measurements(tmp_path / "none.csv")


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    found = read(path, HEADING + ROW)
    assert read_measurements([path, path]).rows.equals(found.rows)
    assert read_measurements([]).rows.is_empty()


RUN = "highest,rank0,rank1\n" + "9000,8000,9000\n" * 2 + "2000,1000,2000\n" * 7 + "4000,1,4000\n"


def test_a_run_of_pico(tmp_path: Path) -> None:
    folder = tmp_path / "lab" / "2025_01_01" / "3"
    folder.mkdir(parents=True)
    (tmp_path / "lab_metadata.csv").write_text(
        "timestamp,test_id,nnodes,tasks_per_node,collective_type,CUDA,notes,mpi_lib,"
        "mpi_lib_version\n2025_01_01,3,2,1,ALLREDUCE,False,,OMPI,4.1.6\n"
    )
    name = "16_bine_bdw_remap_segmented_over_4096_int32.csv"
    row = read(folder / name, RUN).rows.row(0, named=True)
    assert row["library_algorithm"] == "bine_bdw_remap_segmented_over_4096"
    assert (row["size_bytes"], row["nodes"], row["ranks"], row["job"]) == (64, 2, 2, "2025_01_01/3")
    # Two of ten repetitions are warm-up.
    assert (row["time_us"], row["repetitions"], row["low_us"]) == (2.0, 8, 2.0)
    found = read(folder / name, RUN.replace("4000,1,4000", "broken"))
    assert reasons(found) == [(11, "the time is not a number above 0")]


def test_a_run_of_pico_without_metadata(tmp_path: Path) -> None:
    path = tmp_path / "16_ring_over_float.csv"
    row = read(path, RUN, collective="all_reduce").rows.row(0, named=True)
    assert (row["ranks"], row["datatype"], row["nodes"]) == (2, "float32", None)
    with pytest.raises(ConfigError, match="collective of the run is unknown"):
        read_measurements(path)
    other = tmp_path / "times.csv"
    other.write_text(RUN)
    with pytest.raises(ConfigError, match="does not state count, algorithm and datatype"):
        read_measurements(other, collective="all_reduce")
    assert read(path, "highest\n", collective="all_reduce").rows.is_empty()


CLOUD = ",size,{},experiment,cloud,env,env_type,nodes\n{}"


def test_frames_of_osu(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    where = "google/gke/gpu/osu_{},google,gke,gpu,16\n"
    text = CLOUD.format("latency_us", f"0,8.0,30.5,{where}".format("latency"))
    row = read(path, text).rows.row(0, named=True)
    assert (row["collective"], row["nodes"], row["ranks"], row["gpu"]) == ("ping_pong", 2, 2, True)
    assert (row["system"], row["notes"]) == ("google/gke/gpu", "cluster of 16 nodes")
    text = CLOUD.format("bandwidth_mb_s", f"0,8.0,2.5,{where}".format("bw"))
    assert read(path, text).rows.select("collective", "bytes_per_s").row(0) == ("window", 2.5e6)
    text = CLOUD.format("avg_latency_us", f"0,8.0,30.5,{where}".format("allgather"))
    assert "the number of ranks is unknown" in reasons(read(path, text))[0][1]
    row = read(path, text, ranks=64).rows.row(0, named=True)
    assert (row["size_bytes"], row["ranks_per_node"], row["nodes"]) == (512, 4, 16)
    text = CLOUD.format("avg_latency_us", f"0,8.5,30.5,{where}".format("allreduce"))
    assert reasons(read(path, text)) == [(2, "size is not an integer")]
    text = CLOUD.format("avg_latency_us", f"0,8,30.5,{where}".format("iallreduce"))
    assert reasons(read(path, text)) == [(2, "not an OSU program of a known collective")]


def test_results_of_bench(tmp_path: Path) -> None:
    case = {"collective": "all_reduce", "ranks": 4, "size_bytes": 64}
    blocks = [
        case | {"schedule": name, "implementation": how, "time_ps": time, "wrong": int(time == 1)}
        for name, how in (("ring", "schedule"), ("", "own"))
        for time in (1, 2_000_000, 3_000_000, 4_000_000)
    ]
    path = tmp_path / "results.parquet"
    pl.DataFrame(blocks).write_parquet(path)
    found = read_measurements(path)
    assert found.rows.select(
        "library", "library_algorithm", "time_us", "repetitions", "ranks"
    ).rows() == [("libtutti_mpi", "ring", 3.0, 3, 4), (None, None, 3.0, 3, 4)]
    assert reasons(found) == [(1, "wrong results"), (5, "wrong results")]
    pl.DataFrame(blocks).with_columns(emulated=True, model=pl.lit("postal:alpha=1")).write_parquet(
        path
    )
    row = read_measurements(path).rows.row(0, named=True)
    assert (row["emulated"], row["notes"]) == (True, "emulated by postal:alpha=1")
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(ConfigError, match="lacks the column"):
        read_measurements(path)


def test_ten_thousand_rows_are_read_in_a_second(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADING + "".join(ROW.replace("4096", str(n)) for n in range(8, 10_008)))
    started = process_time()
    assert read_measurements(path).rows.height == 10_000
    # Processor time, which does not depend on other programs; far above what a slow machine needs.
    assert process_time() - started < 10


DETAIL = (
    "#Nnodes    Message_size basic_linear         tuned\n"
    "2          1024         64.33(0.94)          107.78(0.61)\n"
    "4          1024         65.38(1.09)          n/a\n"
)


def test_details_of_tuning(tmp_path: Path) -> None:
    found = read(tmp_path / "detail.out", DETAIL, collective="gather")
    columns = ("library_algorithm", "ranks", "size_bytes", "time_us", "statistic", "library")
    assert found.rows.select(columns).rows() == [
        ("basic_linear_ompi", 2, 2048, 64.33, "mean", "Open MPI"),
        ("default_ompi", 2, 2048, 107.78, "mean", "Open MPI"),
    ]
    assert reasons(found) == [(3, "expected ranks, size and 2 times such as 64.3(0.9)")]
    vector = read(tmp_path / "detail.out", DETAIL, collective="all_reduce")
    assert set(vector.rows["size_bytes"]) == {1024}
    with pytest.raises(ConfigError, match="does not state its collective"):
        read(tmp_path / "detail.out", DETAIL)
