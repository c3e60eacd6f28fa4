/* Calls with the same arguments as the previous call: the library's cached state must be valid, whatever happened in between.
 * Exits with 0 if every result is right, with 4 otherwise.
 *
 *     repeated
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 300, LONGER = 70000, TURNS = 5 };

static int rank, ranks, wrong;
static int mine[LONGER], got[LONGER];

/* The contribution of rank `of` to element i in a turn. */
static int given(int of, int turn, int i) { return (of + 1) * 7 + turn * 11 + i; }

static int summed(int turn, int i) {
    int sum = 0;
    for (int of = 0; of < ranks; of++) sum += given(of, turn, i);
    return sum;
}

static void fill(int turn, int count) {
    for (int i = 0; i < count; i++) mine[i] = given(rank, turn, i);
    memset(got, 0, sizeof got);
}

static void expect(const char *what, int turn, int i, int value, int expected) {
    if (value == expected) return;
    if (!wrong) fprintf(stderr, "repeated: %s: rank %d, turn %d, element %d: %d, not %d\n", what, rank, turn, i, value, expected);
    wrong = 1;
}

static void all_reduce(const char *what, int turn, int count) {
    fill(turn, count);
    MPI_Allreduce(mine, got, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) expect(what, turn, i, got[i], summed(turn, i));
}

static void in_place(int turn) {
    fill(turn, COUNT);
    memcpy(got, mine, sizeof(int) * COUNT);
    MPI_Allreduce(MPI_IN_PLACE, got, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) expect("in place", turn, i, got[i], summed(turn, i));
}

static void broadcast(int turn, int root) {
    fill(turn, COUNT);
    MPI_Bcast(mine, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) expect("broadcast", turn, i, mine[i], given(root, turn, i));
}

static void reduce(int turn, int root) {
    fill(turn, COUNT);
    MPI_Reduce(mine, got, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < COUNT; i++) expect("reduce", turn, i, got[i], summed(turn, i));
}

static void all_to_all(int turn) {
    fill(turn, COUNT * ranks);
    MPI_Alltoall(mine, COUNT, MPI_INT, got, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++)
        for (int i = 0; i < COUNT; i++)
            expect("all_to_all", turn, i, got[of * COUNT + i], given(of, turn, rank * COUNT + i));
}

/* The counts of a call with one for each rank are not compared with those of the next call. */
static void reduce_scatter(int turn) {
    int *counts = malloc(sizeof(int) * (size_t)ranks);
    for (int of = 0; of < ranks; of++) counts[of] = COUNT;
    fill(turn, COUNT * ranks);
    MPI_Reduce_scatter(mine, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) expect("reduce_scatter", turn, i, got[i], summed(turn, rank * COUNT + i));
    memset(got, 0, sizeof got);
    MPI_Reduce_scatter_block(mine, got, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) expect("nothing", turn, i, got[i], 0);
    free(counts);
}

static void take_first(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    memcpy(inout, in, sizeof(int) * (size_t)*count);
}

static void take_sum(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

/* Handles of freed operations are reused: the same handle may denote another function, whose operands may no longer be
 * exchanged. */
static void user_operation(int turn) {
    MPI_Op op;
    int first = turn % 2;
    MPI_Op_create(first ? take_first : take_sum, !first, &op);
    fill(turn, COUNT);
    MPI_Allreduce(mine, got, COUNT, MPI_INT, op, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        expect("user's operation", turn, i, got[i], first ? given(0, turn, i) : summed(turn, i));
    MPI_Op_free(&op);
}

/* Handles of freed datatypes are reused for datatypes of another extent. */
static void user_type(int turn) {
    MPI_Datatype type;
    int each = 1 + turn % 3, count = 2;
    MPI_Type_contiguous(each, MPI_INT, &type);
    MPI_Type_commit(&type);
    fill(turn, count * each);
    MPI_Allgather(mine, count, type, got, count, type, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; of++)
        for (int i = 0; i < count * each; i++)
            expect("user's type", turn, i, got[of * count * each + i], given(of, turn, i));
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    void (*const alone[])(int) = {in_place, all_to_all, reduce_scatter, user_operation, user_type};
    for (int turn = 0; turn < TURNS; turn++) all_reduce("again", turn, COUNT);
    for (int turn = 0; turn < TURNS; turn++) { /* buffers that grow, followed by shorter payloads */
        all_reduce("longer", turn, turn % 2 ? LONGER : COUNT);
        all_reduce("shorter", turn, COUNT);
        all_reduce("shorter again", turn + 1, COUNT);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int root = 0; root < ranks; root++) {
            broadcast(turn, root);
            broadcast(turn + 1, root);
            reduce(turn, root);
            reduce(turn + 1, root);
        }
    for (unsigned which = 0; which < sizeof alone / sizeof *alone; which++)
        for (int turn = 0; turn < TURNS; turn++) alone[which](turn);
    for (int turn = 0; turn < TURNS; turn++) { /* two programs alternating */
        in_place(turn);
        all_reduce("in turn", turn, COUNT);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong ? 4 : 0;
}
