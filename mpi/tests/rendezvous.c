/* Tests whether a send of this size completes before its receive is posted: prints `{"buffered": true}` or false.
 *
 *     rendezvous BYTES
 *
 * For tests that prove nothing if the MPI library buffers their messages. Two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECONDS 0.5 /* an MPI library that buffers does so immediately */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void send(char *data, int bytes) {
    MPI_Request request;
    int ended = 0;
    double start = now();
    MPI_Isend(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    while (!ended && now() - start < SECONDS) MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD); /* now it may be received */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("{\"buffered\": %s}\n", ended ? "true" : "false");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, bytes = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(1, (size_t)bytes + 1);
    if (rank == 0) {
        send(data, bytes);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
