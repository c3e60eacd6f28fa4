/* A program retains the distance that it was compiled with, on all its ranks: also if a call with another root needs more
 * concurrent messages than the previous ones.
 *
 *     distances PLAN          a broadcast in which the root sends to all others concurrently
 */
#include "direct.h"

int main(int argc, char **argv) {
    int rank, ranks, wrong = 0;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    tutti_distance near = {.model = 1, .alpha_p = 1e-3, .alpha_r = 1e-4}, none = {.model = 0};
    LIBRARY(tutti_emulate)(&near);
    tutti_plan *plan = plan_of(argv[1]);
    tutti_program *program = compiled(plan, comm);
    LIBRARY(tutti_emulate)(&none);
    for (int root = 0; root < ranks; root++) {
        int value = rank == root ? root + 1 : 0;
        char message[TUTTI_MESSAGE_SIZE] = "";
        tutti_call call = {.recvbuf = &value, .recvcount = 1, .recvtype = MPI_INT, .root = root};
        if (LIBRARY(tutti_execute)(program, &call, message) || value != root + 1) wrong = 1;
    }
    LIBRARY(tutti_program_free)(program);
    LIBRARY(tutti_plan_free)(plan);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return wrong;
}
