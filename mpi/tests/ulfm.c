/* Recovery with ULFM from a rank that dies: the other ranks revoke the communicator, shrink it, and continue.
 *
 *     ulfm    over Open MPI with --with-ft ulfm; 4 ranks, of which the last kills itself
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, ranks, sum = 0, error = 0;
    MPI_Comm comm, rest;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 5; i++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (rank == ranks - 1) raise(SIGKILL);
    while (!error) error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPIX_Comm_revoke(comm);
    error = MPIX_Comm_shrink(comm, &rest);
    if (!error) error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, rest);
    MPI_Comm_size(rest, &ranks);
    if (rank == 0) printf("%d ranks, sum %d, error %d\n", ranks, sum, error);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
