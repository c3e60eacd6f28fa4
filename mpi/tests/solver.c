/* An iterative solver in which each rank decides locally when it has converged, by the residual that an all_reduce returns.
 *
 *     solver SOLVES SECONDS
 *
 * A rank that gets different bits stops in a different iteration, and the others wait for it forever: the job is then ended
 * after SECONDS. Prints JSON: the iterations of all solves, and how many elements of other all_reduces, with inexact
 * operations, differed in bits between ranks. Run it under mpiexec with libtutti_mpi preloaded. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ITERATIONS 10000
#define ELEMENTS 1000

static uint64_t state;

/* Random numbers of very different magnitudes, so that sums round. */
static float drawn(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ldexpf((float)(state >> 40) / 50331645.0f, (int)(state >> 32 & 15) - 8);
}

static float sum_over_ranks(float mine) {
    float sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

/* Finds the number with the least sum of squared distances from the values of all ranks, by gradient descent, until the
 * distance no longer decreases. The last decreases are of the size of rounding errors. */
static int solve(float mine, int ranks) {
    float x = 0.0f, distance = INFINITY, before;
    int iterations = 0;
    do {
        before = distance;
        x -= 0.3f * sum_over_ranks(x - mine) / (float)ranks;
        distance = sum_over_ranks((x - mine) * (x - mine));
    } while (distance < before && ++iterations < MOST_ITERATIONS);
    return iterations;
}

/* The number of elements with bits that differ between ranks. */
static int64_t differing(const float *result) {
    uint32_t bits[2][ELEMENTS];
    int64_t count = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        memcpy(&bits[0][i], &result[i], sizeof *result);
        bits[1][i] = ~bits[0][i];
    }
    PMPI_Allreduce(MPI_IN_PLACE, bits, 2 * ELEMENTS, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 0; i < ELEMENTS; i++) count += bits[0][i] != ~bits[1][i];
    return count;
}

/* Commutes in the reals, as user-defined operations do, but not bit by bit. */
static void skewed(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        ((float *)inout)[i] = (((float *)in)[i] * 3.0f + ((float *)inout)[i] * 2.9999998f) / 3.0f;
}

static int64_t differing_of(MPI_Op op, int rank) {
    float mine[ELEMENTS], result[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        mine[i] = i % 2 ? drawn() : -drawn();
        if ((op == MPI_MAX || op == MPI_MIN) && (i + rank) % 3 == 0) mine[i] = i % 2 ? NAN : copysignf(0.0f, mine[i]);
    }
    MPI_Allreduce(mine, result, ELEMENTS, MPI_FLOAT, op, MPI_COMM_WORLD);
    return differing(result);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, solves = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    alarm(argc > 2 ? (unsigned)atoi(argv[2]) : 60);
    state = 12345 + 977 * (uint64_t)rank;
    MPI_Op own;
    MPI_Op_create(skewed, 1, &own);
    int64_t sums = differing_of(MPI_SUM, rank), products = differing_of(MPI_PROD, rank);
    int64_t maxima = differing_of(MPI_MAX, rank), users = differing_of(own, rank);
    int64_t iterations = 0, least, most;
    for (int i = 0; i < solves; i++) iterations += solve(drawn(), ranks);
    PMPI_Allreduce(&iterations, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    PMPI_Allreduce(&iterations, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"least\": %" PRId64 ", \"most\": %" PRId64 ", \"sums\": %" PRId64 ", \"products\": %" PRId64
               ", \"maxima\": %" PRId64 ", \"users\": %" PRId64 "}\n", least, most, sums, products, maxima, users);
    MPI_Op_free(&own);
    MPI_Finalize();
    return 0;
}
