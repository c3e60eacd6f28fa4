"""Small files of other tools, as texts."""

from __future__ import annotations

from typing import Any

SIMGRID = b"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
%b</platform>
"""


CLUSTERS = b"""  <zone id="all" routing="Floyd">
    <cluster id="a" prefix="a-" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"
             bb_bw="2.25GBps" bb_lat="500us" limiter_link="1GBps" router_id="ra"/>
    <cluster id="t" prefix="t-" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us"
             topology="TORUS" topo_parameters="2,2,2" sharing_policy="FATPIPE"/>
    <link id="l" bandwidth="10Gbps" latency="1ms"/>
    <zoneRoute src="a" dst="t" gw_src="ra" gw_dst="t-0"><link_ctn id="l"/></zoneRoute>
  </zone>
"""


ZONES = b"""  <zone id="z" routing="Full">
    <host id="a" speed="1Gf"/>
    <host id="b" speed="1Gf"><prop id="x" value="1"/></host>
    <host id="c" speed="2Gf" core="4"/>
    <link id="1" bandwidth="1GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>
    <link id="2" bandwidth="8Mbps" latency="0.5ms"/>
    <route src="a" dst="b"><link_ctn id="1" direction="UP"/></route>
    <route src="b" dst="c"><link_ctn id="2"/></route>
    <route src="a" dst="c"><link_ctn id="1" direction="UP"/><link_ctn id="2"/></route>
  </zone>
"""


MSCCL = b"".join(
    (
        b'<algo name="a" nchannels="1" nchunksperloop="2" proto="LL" ngpus="2" coll="alltoall">\n',
        *(
            b'<gpu id="%d" i_chunks="2" o_chunks="2" s_chunks="0"><copy i_off="%d" o_off="%d"/>\n'
            b'<tb id="0" send="%d" recv="-1" chan="0"><step s="0" type="s" srcbuf="i" srcoff="%d" '
            b'dstbuf="o" dstoff="%d" cnt="1"/></tb>\n<tb id="1" send="-1" recv="%d" chan="0">'
            b'<step s="0" type="r" srcbuf="i" srcoff="%d" dstbuf="o" dstoff="%d" cnt="1"/></tb>'
            b"</gpu>\n" % (a, a, a, b, b, a, b, a, b)
            for a, b in ((0, 1), (1, 0))
        ),
        b"</algo>\n",
    )
)


TACOS = b"""NPUs Count,3
Links Count,3
Chunks Count,6
Chunk Size,1.04858e+06,B
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks
0,1,500,50,0,3,2,5
1,2,500,50,1,4,0,3
2,0,500,50,2,5,1,4
"""


TACOS_TIMES = b"""NPUs Count,3
Links Count,3
Chunks Count,9
Chunk Size,1000
Collective Time,60.0,ns
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks (ID:ns:ns)
0,1,5,1,1:0:20,2:20:40,7:40:60
1,2,5,1,5:0:20,3:20:40,2:40:60
2,0,5,1,6:0:20,7:20:40,3:40:60
"""


def pytorch() -> Any:
    """Returns a trace as PyTorch records it: launchers on a CPU, kernels on streams, groups."""
    from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node

    groups = '[\'[{"pg_name": "0", "ranks": [], "group_size": 2}]\']'
    nodes = [Node(id=1, name="process_group:init", type="METADATA", inputs=(groups, "", ""))]
    for at in range(4):
        cpu = {"is_cpu_op": Attribute("bool", value=True), "tid": Attribute("int64", 9)}
        gpu = {"is_cpu_op": Attribute("bool", value=False), "stream": Attribute("int64", 7)}
        kind = "COMM_COLL" if at % 2 else "COMP"
        if at % 2:
            gpu |= {"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 64)}
            gpu |= {"pg_name": Attribute("string", str(at // 2))}
        before = (2 * at,) if at else ()
        nodes += [
            Node(
                id=2 * at + 2,
                name="op",
                data_deps=before,
                ctrl_deps=(1,),
                attributes=cpu,
                start_us=10 * at + 10,
                duration_us=3,
            ),
            Node(
                id=2 * at + 3,
                name="kernel",
                type=kind,
                data_deps=(2 * at + 2,),
                attributes=gpu,
                start_us=10 * at + 12,
                duration_us=4,
            ),
        ]
    return ChakraTrace(nodes=tuple(nodes))


SIMAI = b"""HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 8
2
a -1 5 ALLREDUCE 64 5 ALLGATHER 64 1 REDUCESCATTER_DP_EP 64 1
b 1 5 ALLTOALL_EP 64 5 BROADCAST 8 1 NONE 0 1
"""


REPEATING = b"""HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 checkpoints: 1 0
checkpoint_initiates: 1 1
2
a -1 5 NONE 0 5 NONE 0 1 ALLREDUCE 64 1
b -1 5 NONE 0 5 NONE 0 1 ALLREDUCE 64 1
""".replace(b"0\ncheck", b"0 check")


CUSTOMIZED = b"""HYBRID_CUSTOMIZED
2
a -1 5 ALLGATHER 64 5 NONE 0 1 ALLREDUCE 8 1 HYBRID_DATA_MODEL
b -1 5 NONE 0 5 NONE 0 1 ALLREDUCE 64 1 DATA
"""


DLRM = b"""HYBRID_DLRM 1
3
e -1 3 ALLTOALL 64 1 ALLTOALL 64 0 NONE 0 5
b -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 64 1
t -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 64 1
"""


TEXTS = (SIMAI, REPEATING, CUSTOMIZED, DLRM)


GRAPHS = b"""<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="24" speedinter="20.5"
         latencyinter="0" typeintra="NVL" typeinter="PXB" samechannels="1">
    <channel>
      <net dev="0"/>
      <gpu dev="0" rank="0"/>
      <gpu dev="1" rank="1"/>
      <net dev="0"/>
    </channel>
  </graph>
</graphs>
"""
