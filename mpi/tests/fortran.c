/* Calls collectives as Fortran programs do: by name, with all arguments by reference. Exits with 4 if a result is wrong.
 * As a shared library without `main`: what a Python module in Fortran does. */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 100, MOST = 16 };

extern char mpi_fortran_in_place_; /* MPI_IN_PLACE */
void mpi_init_(MPI_Fint *ierror);
void mpi_finalize_(MPI_Fint *ierror);
void mpi_comm_free_(MPI_Fint *comm, MPI_Fint *ierror);
typedef void allreduce(const void *sendbuf, void *recvbuf, const MPI_Fint *count, const MPI_Fint *datatype, const MPI_Fint *op,
                       const MPI_Fint *comm, MPI_Fint *ierror);
allreduce mpi_allreduce_, mpi_allreduce__, mpi_allreduce_f08_;
void mpi_allgatherv_(const void *sendbuf, const MPI_Fint *sendcount, const MPI_Fint *sendtype, void *recvbuf,
                     const MPI_Fint recvcounts[], const MPI_Fint displs[], const MPI_Fint *recvtype, const MPI_Fint *comm,
                     MPI_Fint *ierror);
void mpi_reduce_scatter_(const void *sendbuf, void *recvbuf, const MPI_Fint recvcounts[], const MPI_Fint *datatype,
                         const MPI_Fint *op, const MPI_Fint *comm, MPI_Fint *ierror);
void mpi_iallreduce_(const void *sendbuf, void *recvbuf, const MPI_Fint *count, const MPI_Fint *datatype, const MPI_Fint *op,
                     const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror);

static int rank, ranks, wrong;
static MPI_Fint real, integer, sum, world;
static double mine[COUNT], all[COUNT];

static void reduce(allreduce *by, const void *sendbuf, MPI_Fint comm, MPI_Fint *ierror) {
    const MPI_Fint count = COUNT;
    for (int i = 0; i < COUNT; i++) mine[i] = all[i] = rank + i;
    by(sendbuf, all, &count, &real, &sum, &comm, ierror);
    for (int i = 0; i < COUNT; i++) wrong |= all[i] != ranks * (ranks - 1) / 2 + ranks * i;
}

static void gather_and_scatter(void) {
    MPI_Fint counts[MOST], places[MOST], own[MOST], got[2 * MOST] = {0}, count = rank + 1, start = 0, ierror = -1;
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 1;
        places[i] = start;
        own[i] = 10 * rank + i;
        start += i + 1;
    }
    mpi_allgatherv_(own, &count, &integer, got, counts, places, &integer, &world, &ierror);
    for (int i = 0; i < ranks; i++)
        for (int k = 0; k <= i; k++) wrong |= got[places[i] + k] != 10 * i + k;
    wrong |= ierror != MPI_SUCCESS;
    for (int i = 0; i < ranks; i++) counts[i] = 1;
    mpi_reduce_scatter_(own, got, counts, &integer, &sum, &world, &ierror);
    wrong |= got[0] != 10 * ranks * (ranks - 1) / 2 + ranks * rank;
}

static void without_waiting(void) {
    MPI_Fint total = -1, one = 1, request, ierror = -1;
    mpi_iallreduce_(&one, &total, &one, &integer, &sum, &world, &request, &ierror);
    MPI_Request handle = MPI_Request_f2c(request);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
    wrong |= ierror != MPI_SUCCESS || total != ranks;
}

int run(void) {
    MPI_Fint ierror = -1;
    mpi_init_(&ierror);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    real = MPI_Type_c2f(MPI_DOUBLE_PRECISION);
    integer = MPI_Type_c2f(MPI_INTEGER);
    sum = MPI_Op_c2f(MPI_SUM);
    world = MPI_Comm_c2f(MPI_COMM_WORLD);
    reduce(mpi_allreduce_, mine, world, &ierror);
    reduce(mpi_allreduce__, mine, world, &ierror);
    reduce(mpi_allreduce_f08_, mine, world, NULL);
    reduce(mpi_allreduce_, &mpi_fortran_in_place_, world, &ierror);
    gather_and_scatter();
    without_waiting();
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Fint handle = MPI_Comm_c2f(other);
    reduce(mpi_allreduce_, mine, handle, &ierror);
    mpi_comm_free_(&handle, &ierror);
    wrong |= handle != MPI_Comm_c2f(MPI_COMM_NULL) || ierror != MPI_SUCCESS;
    if (rank == 0) printf("%s\n", wrong ? "wrong" : "right");
    mpi_finalize_(&ierror);
    return wrong ? 4 : 0;
}

#ifndef MODULE
int main(void) { return run(); }
#endif
