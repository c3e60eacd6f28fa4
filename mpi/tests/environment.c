/* Modifies the environment of one rank before MPI_Init, calls an all-reduce, clears the environment of all ranks, and exits.
 *
 *     environment VERDICT init|session [RANK NAME [VALUE]]
 *
 * RANK is the launcher's number of a rank: NAME is set to VALUE there, or unset. `session`: opens a session before MPI_Init.
 * Rank 0 writes `right` or `wrong` into the file VERDICT after the all-reduce. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void change(char **what, int count) {
    const char *name = getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK";
    if (atoi(getenv(name)) != atoi(what[0])) return;
    if (count > 2)
        setenv(what[1], what[2], 1);
    else
        unsetenv(what[1]);
}

int main(int argc, char **argv) {
    int rank, ranks, sum = 0;
    MPI_Session session = MPI_SESSION_NULL;
    int in_session = argc > 2 && strcmp(argv[2], "session") == 0;
    if (argc < 3) return 2;
    if (argc > 4) change(argv + 3, argc - 3);
    if (in_session) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        FILE *file = fopen(argv[1], "w");
        fprintf(file, "%s\n", sum == ranks * (ranks - 1) / 2 ? "right" : "wrong");
        fclose(file);
    }
    clearenv();
    if (in_session) MPI_Session_finalize(&session);
    return MPI_Finalize();
}
