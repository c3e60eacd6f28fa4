/* Counts of a datatype of size 0 that overflow 64 bits when multiplied by the number of ranks. Exit code 0: refused. */
#include "demand.h"

#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    tutti_type_cache cache = {.paired = 0};
    tutti_demand demand;
    tutti_call call = {.sendcount = INT64_MAX / 2, .sendtype = empty, .recvcount = INT64_MAX / 2, .recvtype = empty};
    int found = tutti_demand_of(TUTTI_ALL_GATHER, &call, 0, 4, &cache, &demand);
    call.sendcount = call.recvcount = INT64_MAX / 4;
    int fits = tutti_demand_of(TUTTI_ALL_GATHER, &call, 0, 4, &cache, &demand);
    printf("%d %d\n", found, fits);
    MPI_Type_free(&empty);
    MPI_Finalize();
    return found != TUTTI_NOT_COVERED || fits != 0;
}
