/* A program that some ranks run without the library. Every rank prints whether its results are right or wrong.
 *
 *     lacking reduce | receive    the ranks start with an all-reduce, or with a receive from MPI_ANY_SOURCE
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, ranks, sum = 0, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 2 && strcmp(argv[1], "receive") == 0) {
        int got = -1;
        MPI_Request request;
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % ranks, 7, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong = got != (rank + ranks - 1) % ranks;
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong |= sum != ranks * (ranks - 1) / 2;
    printf("%s\n", wrong ? "WRONG" : "right");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
