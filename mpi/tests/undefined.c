/* Every predefined operation on every predefined datatype, with one element. If the MPI library rejects a call, the preloaded
 * library must raise the error on the call's communicator and on no other; otherwise the results must be the same bytes.
 * Then unnamed Fortran datatypes. Exits with 0 if all checks pass; run it with libtutti_mpi preloaded and a plan. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 64

static int failures;

static void fail(const char *what, const char *type) {
    fprintf(stderr, "undefined: %s, %s\n", what, type);
    failures++;
}

static int known(int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    return code == MPI_SUCCESS ? MPI_SUCCESS : class;
}

static void reduce(MPI_Op op, const char *operation, MPI_Datatype type, const char *name, MPI_Comm comm) {
    unsigned char data[CAPACITY] = {0}, ours[CAPACITY] = {0}, theirs[CAPACITY] = {0};
    int size = 0, rank;
    MPI_Comm_rank(comm, &rank);
    if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &size) || size == 0 || size > CAPACITY) return;
    memset(data, rank % 2, sizeof data); /* 0 and 1 are valid values of every datatype, including bool */
    int got = MPI_Allreduce(data, ours, 1, type, op, comm), expected = PMPI_Allreduce(data, theirs, 1, type, op, comm);
    if (known(got) != known(expected)) fail(operation, name);
    if (got == MPI_SUCCESS && expected == MPI_SUCCESS && memcmp(ours, theirs, sizeof ours) != 0) fail("other bytes", name);
}

#define T(type) {type, #type}
#define O(op) {op, #op}

static void reduce_all(MPI_Comm comm) {
    const struct { MPI_Datatype type; const char *name; } types[] = {
        T(MPI_CHAR), T(MPI_SIGNED_CHAR), T(MPI_UNSIGNED_CHAR), T(MPI_BYTE), T(MPI_WCHAR), T(MPI_SHORT), T(MPI_INT),
        T(MPI_LONG), T(MPI_LONG_LONG), T(MPI_UNSIGNED), T(MPI_INT8_T), T(MPI_UINT64_T), T(MPI_AINT), T(MPI_OFFSET),
        T(MPI_COUNT), T(MPI_FLOAT), T(MPI_DOUBLE), T(MPI_C_FLOAT_COMPLEX), T(MPI_C_DOUBLE_COMPLEX), T(MPI_C_BOOL),
        T(MPI_PACKED), T(MPI_2INT), T(MPI_FLOAT_INT), T(MPI_CHARACTER), T(MPI_LOGICAL), T(MPI_INTEGER), T(MPI_INTEGER8),
        T(MPI_REAL), T(MPI_REAL8), T(MPI_DOUBLE_PRECISION), T(MPI_COMPLEX), T(MPI_DOUBLE_COMPLEX), T(MPI_2REAL),
        T(MPI_2INTEGER), T(MPI_2DOUBLE_PRECISION)};
    const struct { MPI_Op op; const char *name; } operations[] = {
        O(MPI_MAX), O(MPI_MIN), O(MPI_SUM), O(MPI_PROD), O(MPI_LAND), O(MPI_LOR), O(MPI_LXOR), O(MPI_BAND), O(MPI_BOR),
        O(MPI_BXOR), O(MPI_MAXLOC), O(MPI_MINLOC)};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
            reduce(operations[o].op, operations[o].name, types[t].type, types[t].name, comm);
}

/* A datatype of MPI_Type_create_f90_integer is predefined: freeing it is an error. */
static void gather_unnamed(MPI_Comm comm) {
    MPI_Datatype integer, two;
    int sent[2] = {3, 4}, taken[CAPACITY] = {0}, ranks, size = 0;
    MPI_Comm_size(comm, &ranks);
    if (MPI_Type_create_f90_integer(9, &integer) || MPI_Type_size(integer, &size) || size != sizeof(int)) return;
    MPI_Type_contiguous(2, integer, &two);
    MPI_Type_commit(&two);
    for (int again = 0; again < 3; again++) {
        if (MPI_Allgather(sent, 1, two, taken, 1, two, comm)) fail("all_gather", "MPI_Type_create_f90_integer");
        if (MPI_Bcast(taken, 2, integer, 0, comm)) fail("broadcast", "MPI_Type_create_f90_integer");
    }
    if (taken[2 * ranks - 1] != 4) fail("other values", "MPI_Type_create_f90_integer");
    MPI_Type_free(&two);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    reduce_all(comm);
    gather_unnamed(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return failures ? 1 : 0;
}
