/* Repeated calls that are forwarded to the MPI library, interleaved with covered ones: each must be counted under its reason.
 * Exits with 4 if a result is wrong. The plan only contains all_reduces of 1 KiB and more.
 *
 *     passed_again TURNS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1024 };

static int rank, ranks, wrong;
static int mine[MOST], got[MOST];

static void first(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] = ((int *)in)[i];
}

static void expect(int count, int value) {
    for (int i = 0; i < count; i++) wrong |= got[i] != value;
}

static void reduce(int count, MPI_Op op, int times, int value) {
    for (int i = 0; i < times; i++) {
        got[0] = -1;
        MPI_Allreduce(mine, got, count, MPI_INT, op, MPI_COMM_WORLD);
        expect(count, value);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int sum = ranks * (ranks + 1) / 2;
    for (int i = 0; i < MOST; i++) mine[i] = rank + 1;
    for (int turn = argc > 1 ? atoi(argv[1]) : 1; turn > 0; turn--) {
        MPI_Op own; /* its handle may be reused */
        MPI_Op_create(first, 0, &own);
        reduce(2, MPI_SUM, 3, sum);          /* passed: too small */
        reduce(256, MPI_SUM, 2, sum);        /* covered */
        reduce(2, MPI_SUM, 1, sum);          /* passed */
        reduce(2, MPI_MAX, 2, ranks);        /* passed */
        reduce(255, MPI_MAX, 1, ranks);      /* passed */
        reduce(256, MPI_MAX, 1, ranks);      /* covered */
        reduce(2, own, 2, 1);                /* passed */
        MPI_Bcast(mine, 1, MPI_INT, 0, MPI_COMM_WORLD); /* passed: no rule */
        mine[0] = rank + 1;
        MPI_Bcast(mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
        mine[0] = rank + 1;
        MPI_Datatype pair;
        MPI_Type_contiguous(turn % 2 ? 2 : 256, MPI_INT, &pair);
        MPI_Type_commit(&pair);
        MPI_Op_free(&own);
        MPI_Op_create(first, 1, &own);
        for (int i = 0; i < 2; i++) MPI_Allreduce(mine, got, 1, pair, own, MPI_COMM_WORLD); /* passed, or covered */
        MPI_Type_free(&pair);
        MPI_Op_free(&own);
    }
    MPI_Finalize();
    return wrong ? 4 : 0;
}
