/* Times MPI functions through libtutti_mpi and those of the MPI library (PMPI_), in turns within one process. Run it under
 * mpiexec with libtutti_mpi preloaded and a plan that covers none of the calls:
 *
 *     forwarding BLOCKS CALLS
 *
 * Prints a line for each function: its name, the median time of the MPI library's function in us, the median of the ratios of
 * neighbouring blocks, and its 95 % confidence interval from order statistics. All times are those of the slowest rank. */
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 64, MOST_BLOCKS = 4096 };

static double mine[2 * MOST_RANKS], all[2 * MOST_RANKS];
static int counts[MOST_RANKS], places[MOST_RANKS], ranks;
static MPI_Request request;

#define WORLD MPI_COMM_WORLD
#define FINISHED PMPI_Wait(&request, MPI_STATUS_IGNORE)
#define FUNCTIONS(X)                                                                                          \
    X(Allreduce, (mine, all, 1, MPI_DOUBLE, MPI_SUM, WORLD), )                                                \
    X(Bcast, (all, 1, MPI_DOUBLE, 0, WORLD), )                                                                \
    X(Barrier, (WORLD), )                                                                                     \
    X(Allgatherv, (mine, 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, WORLD), )                            \
    X(Alltoallv, (mine, counts, places, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, WORLD), )                \
    X(Reduce_scatter, (mine, all, counts, MPI_DOUBLE, MPI_SUM, WORLD), )                                      \
    X(Iallreduce, (mine, all, 1, MPI_DOUBLE, MPI_SUM, WORLD, &request), FINISHED)                             \
    X(Ibcast, (all, 1, MPI_DOUBLE, 0, WORLD, &request), FINISHED)                                             \
    X(Ibarrier, (WORLD, &request), FINISHED)

#define PAIR(Name, arguments, after)                                  \
    static void mpi_##Name(void) { MPI_##Name arguments; after; }     \
    static void pmpi_##Name(void) { PMPI_##Name arguments; after; }
FUNCTIONS(PAIR)

/* Fortran functions, if a library of them is loaded. */
typedef void reduction(const void *, void *, const MPI_Fint *, const MPI_Fint *, const MPI_Fint *, const MPI_Fint *, MPI_Fint *);
static reduction *fortran, *inner;
static MPI_Fint one = 1, real, sum, world, ierror;
static void mpi_fortran(void) { fortran(mine, all, &one, &real, &sum, &world, &ierror); }
static void pmpi_fortran(void) { inner(mine, all, &one, &real, &sum, &world, &ierror); }

static double timed(void (*call)(void), int calls) {
    double slowest, start;
    PMPI_Barrier(WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < calls; i++) call();
    double taken = (MPI_Wtime() - start) / calls;
    PMPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    return slowest;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(const char *name, void (*through)(void), void (*bare)(void), int blocks, int calls) {
    static double ratio[MOST_BLOCKS], time[MOST_BLOCKS];
    int rank;
    timed(through, calls);
    timed(bare, calls);
    for (int i = 0; i < blocks; i++) {
        double first = timed(i % 2 ? through : bare, calls), second = timed(i % 2 ? bare : through, calls);
        time[i] = i % 2 ? second : first;
        ratio[i] = i % 2 ? first / second : second / first;
    }
    qsort(time, (size_t)blocks, sizeof *time, ascending);
    qsort(ratio, (size_t)blocks, sizeof *ratio, ascending);
    int half = (int)ceil(0.98 * sqrt(blocks));
    MPI_Comm_rank(WORLD, &rank);
    if (rank == 0)
        printf("%-20s %8.3f us  %.3f (%.3f to %.3f)\n", name, 1e6 * time[blocks / 2], ratio[blocks / 2],
               ratio[blocks / 2 - half], ratio[blocks / 2 + half]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(WORLD, &ranks);
    int blocks = argc > 1 ? atoi(argv[1]) : 0, calls = argc > 2 ? atoi(argv[2]) : 0;
    if (blocks < 16 || blocks > MOST_BLOCKS || calls < 1 || ranks > MOST_RANKS) {
        fprintf(stderr, "forwarding BLOCKS CALLS: expected 16 to %d blocks and up to %d ranks\n", MOST_BLOCKS, MOST_RANKS);
        MPI_Abort(WORLD, 2);
    }
    for (int i = 0; i < ranks; i++) {
        counts[i] = 1;
        places[i] = i;
    }
#define COMPARED(Name, arguments, after) compare("MPI_" #Name, mpi_##Name, pmpi_##Name, blocks, calls);
    FUNCTIONS(COMPARED)
    *(void **)&fortran = dlsym(RTLD_DEFAULT, "mpi_allreduce_");
    *(void **)&inner = dlsym(RTLD_DEFAULT, "pmpi_allreduce_");
    real = MPI_Type_c2f(MPI_DOUBLE);
    sum = MPI_Op_c2f(MPI_SUM);
    world = MPI_Comm_c2f(WORLD);
    if (fortran && inner) compare("mpi_allreduce_", mpi_fortran, pmpi_fortran, blocks, calls);
    MPI_Finalize();
    return 0;
}
