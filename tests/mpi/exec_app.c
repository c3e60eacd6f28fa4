/* A program that is independent of tutti: calls some collectives, checks their results, and returns a distinct exit code. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 5; i++) {
        double mine[3] = {rank, 1, i}, all[3];
        MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong |= all[0] != ranks * (ranks - 1) / 2 || all[1] != ranks || all[2] != i * ranks;
    }
    int status = rank == 1 ? 42 : 0, sum = 0;
    MPI_Bcast(&status, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong |= status != 42 || sum != rank * (rank + 1) / 2;
    printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong ? 99 : argc > 1 ? atoi(argv[1]) : 0;
}
