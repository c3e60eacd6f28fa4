/* Many communicators, with a collective on each. Rank 0 prints the result.
 *
 *     many dups          as many duplicates of the world as the MPI library provides, at most 3000: {"dups": N, "right": true}.
 *
 *     many collectives N   N duplicates, an all-reduce on each: correct on all ranks, or the exit code is 1.
 *
 *     many tags N RANK   the same, with a limit on RANK (-1: no rank) of too few tags.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 3000 };

static MPI_Comm comms[MOST];
static int few_tags;

/* Intercepts the library's query of MPI_TAG_UB. */
int PMPI_Comm_get_attr(MPI_Comm comm, int key, void *value, int *found) {
    typedef int function(MPI_Comm, int, void *, int *);
    static function *of_mpi;
    static int few = 41;
    if (!of_mpi) *(void **)&of_mpi = dlsym(RTLD_NEXT, "PMPI_Comm_get_attr");
    int error = of_mpi(comm, key, value, found);
    if (few_tags && key == MPI_TAG_UB) {
        *(int **)value = &few;
        *found = 1;
    }
    return error;
}

static int duplicate(int most) {
    int made = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (made < most && MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]) == MPI_SUCCESS) made++;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return made;
}

static int is_right(MPI_Comm comm, int number) {
    int rank, ranks, sum = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int mine = rank + number;
    if (MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS) return 0;
    return sum == ranks * number + ranks * (ranks - 1) / 2;
}

int main(int argc, char **argv) {
    int rank, right = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    few_tags = argc == 4 && atoi(argv[3]) == rank;
    int made = duplicate(argc > 2 ? atoi(argv[2]) : MOST);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < made; i++) right &= is_right(comms[i], i);
    if (argc > 2) right &= made == atoi(argv[2]);
    /* Freed communicators release their tags. */
    for (int i = 0; i < made; i++) MPI_Comm_free(&comms[i]);
    made = argc == 4 ? duplicate(5) : made;
    for (int i = 0; argc == 4 && i < made; i++) {
        right &= is_right(comms[i], i);
        MPI_Comm_free(&comms[i]);
    }
    if (rank == 0) printf("{\"dups\": %d, \"right\": %s}\n", made, right ? "true" : "false");
    MPI_Finalize();
    return !right;
}
