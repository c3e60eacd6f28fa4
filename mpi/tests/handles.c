/* Reused handles: datatypes, operations and communicators are freed and created again, in calls that are otherwise the same,
 * with the same buffers. State that the library caches must not outlive the object that it describes.
 *
 *     handles ROUNDS
 *
 * Prints JSON; `again` counts the handles that equal those of the round before. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4, MOST = 3, LENGTH = COUNT * (MOST + 1) };

static int rank, ranks, cases, failures, again;
static int data[LENGTH], result[LENGTH], many[LENGTH * 64];

static void judge(const char *what, int round, int code, const int *got, const int *expected, int count) {
    cases++;
    if (code == MPI_SUCCESS && memcmp(got, expected, (size_t)count * sizeof *got) == 0) return;
    int at = 0;
    while (at + 1 < count && got[at] == expected[at]) at++;
    if (failures++ < 5)
        fprintf(stderr, "handles: %s, round %d, rank %d: the call returned %d; element %d is %d: expected %d\n", what, round,
                rank, code, at, got[at], expected[at]);
}

/* --- operations: the same handle, another function, commutative or not --------------------------------------------- */

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void largest(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        if (((int *)inout)[i] < ((int *)in)[i]) ((int *)inout)[i] = ((int *)in)[i];
}

static void first(void *in, void *inout, int *count, MPI_Datatype *type) { /* associative, does not commute */
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

static void with_operation(int round) {
    static MPI_User_function *const functions[] = {add, largest, first};
    static MPI_Op before;
    int which = round % 3, expected[COUNT];
    MPI_Op op;
    MPI_Op_create(functions[which], which < 2, &op);
    again += round > 0 && op == before;
    before = op;
    for (int i = 0; i < COUNT; i++) {
        data[i] = 10 * (rank + 1) + i;
        expected[i] = which == 1 ? 10 * ranks + i : 10 + i;
        if (which == 0) expected[i] = 10 * ranks * (ranks + 1) / 2 + ranks * i;
    }
    judge("all_reduce", round, MPI_Allreduce(data, result, COUNT, MPI_INT, op, MPI_COMM_WORLD), result, expected, COUNT);
    MPI_Op_free(&op);
}

/* --- datatypes: the same handle, another size or extent ------------------------------------------------------------ */

static void with_datatype(int round) {
    static MPI_Datatype before;
    int taken = 1 + round % MOST, extent = taken + round / MOST % 2, root = 0, expected[LENGTH];
    MPI_Datatype inner, type;
    MPI_Type_contiguous(taken, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, (MPI_Aint)((size_t)extent * sizeof(int)), &type);
    MPI_Type_commit(&type);
    again += round > 0 && type == before;
    before = type;
    for (int i = 0; i < LENGTH; i++) {
        int inside = i / extent < COUNT && i % extent < taken;
        data[i] = rank == root ? round + i : -1;
        expected[i] = rank == root || inside ? round + i : -1;
    }
    judge("broadcast", round, MPI_Bcast(data, COUNT, type, root, MPI_COMM_WORLD), data, expected, LENGTH);
    MPI_Type_free(&type);
    MPI_Type_free(&inner);
}

/* --- communicators: the same handle, ranks in another order --------------------------------------------------------- */

static void with_communicator(int round) {
    static MPI_Comm before;
    int rotated = (rank + round) % ranks, expected[64];
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rotated, &comm);
    again += round > 0 && comm == before;
    before = comm;
    for (int i = 0; i < ranks; i++) expected[i] = (i + ranks - round % ranks) % ranks;
    data[0] = rank;
    judge("all_gather", round, MPI_Allgather(data, 1, MPI_INT, many, 1, MPI_INT, comm), many, expected, ranks);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || ranks > 64) {
        fprintf(stderr, "handles: expected one argument, ROUNDS, and at most 64 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int round = 0; round < atoi(argv[1]); round++) {
        with_operation(round);
        with_datatype(round);
        with_communicator(round);
    }
    PMPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("{\"cases\": %d, \"failures\": %d, \"again\": %d}\n", cases, failures, again);
    MPI_Finalize();
    return failures != 0;
}
