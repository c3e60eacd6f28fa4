/* Endless all-reduces; one rank is killed. No rank may get a wrong result, and the job must end.
 *
 *     killed RANK CALLS ELEMENTS VERDICT
 *
 * A wrong result is reported in the file VERDICT: launchers may drop output that a rank wrote just before its job was
 * aborted, and choose exit codes themselves. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void report(const char *verdict, const char *what, int rank, int call) {
    FILE *file = fopen(verdict, "a");
    if (file) {
        fprintf(file, "WRONG: rank %d, call %d: %s\n", rank, call, what);
        fclose(file);
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    int count = atoi(argv[3]);
    int *mine = malloc(sizeof(int) * (size_t)count), *sum = malloc(sizeof(int) * (size_t)count);
    for (int call = 0;; call++) {
        for (int i = 0; i < count; i++) mine[i] = rank + call + i;
        if (rank == atoi(argv[1]) && call == atoi(argv[2])) raise(SIGKILL);
        int code = MPI_Allreduce(mine, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
            int expected = ranks * (ranks - 1) / 2 + ranks * (call + i);
            if (sum[i] != expected) report(argv[4], "an element is wrong", rank, call);
        }
        if (call >= atoi(argv[2])) /* impossible: the dead rank contributed nothing */
            report(argv[4], "a result without the dead rank", rank, call);
    }
}
