# ruff: noqa - a script of gem5, with gem5's names
# A mesh of num_cpus routers in mesh_rows rows, as a topology script of gem5 describes it.
# X links have weight 1 and Y links weight 2: gem5's tables then route X first.
from m5.objects import *
from m5.params import *
from topologies.BaseTopology import SimpleTopology


class SmallMesh(SimpleTopology):
    description = "SmallMesh"

    def __init__(self, controllers):
        self.nodes = controllers

    def makeTopology(self, options, network, IntLink, ExtLink, Router):
        count = options.num_cpus
        columns = count // options.mesh_rows
        assert columns * options.mesh_rows == count

        routers = [Router(router_id=i, latency=options.router_latency) for i in range(count)]
        network.routers = routers
        network.ext_links = [
            ExtLink(
                link_id=i,
                ext_node=node,
                int_node=routers[i % count],
                latency=options.link_latency,
            )
            for (i, node) in enumerate(self.nodes)
        ]

        def link(a, b, weight):
            for source, target in ((a, b), (b, a)):
                network.int_links.append(
                    IntLink(
                        link_id=len(self.nodes) + len(network.int_links),
                        src_node=routers[source],
                        dst_node=routers[target],
                        latency=options.link_latency,
                        weight=weight,
                    )
                )

        for router in range(count):
            if router % columns + 1 < columns:
                link(router, router + 1, 1)
            if router + columns < count:
                link(router, router + columns, 2)
