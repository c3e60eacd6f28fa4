/* Errors in calls that schedules perform. Exits with 0 on every rank if each call returned the expected code.
 *
 *     errors truncated | aliased | handlers | counts
 *     errors abandoned|abandoned-far PLAN     a direct all_reduce of 3 ranks; `far`: with emulated distance
 */
#include "direct.h"

#include <string.h>

enum { COUNT = 2000 };

static int rank, wrong, *mine, *sum;

static void expect(const char *what, int code, int class) {
    int got;
    MPI_Error_class(code, &got);
    if (got == class) return;
    fprintf(stderr, "errors: rank %d: %s: class %d instead of %d\n", rank, what, got, class);
    wrong = 1;
}

static int reduce(int count, MPI_Comm comm) {
    return MPI_Allreduce(mine, sum, count, MPI_INT, MPI_SUM, comm);
}

/* Rank 0 calls with fewer elements than the others, and receives more than fits into its buffer. */
static void truncated(void) {
    MPI_Comm comm, other;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    expect("at first", reduce(COUNT / 2, comm), MPI_SUCCESS);
    int code = reduce(rank ? COUNT : COUNT / 2, comm);
    if (rank == 0) {
        expect("the longer message", code, MPI_ERR_TRUNCATE);
        expect("the next call", reduce(COUNT, comm), MPI_ERR_TRUNCATE);
        expect("an empty call", reduce(0, comm), MPI_ERR_TRUNCATE);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    expect("another communicator", reduce(COUNT, other), MPI_SUCCESS);
    expect("the world", reduce(COUNT, MPI_COMM_WORLD), MPI_SUCCESS);
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
}

/* Identical send and receive buffers are treated as MPI_IN_PLACE, on one rank and on all. */
static void aliased(void) {
    int *both = malloc(COUNT * sizeof *both);
    for (int who = 0; who < 3; who++) {
        int is_aliased = who == rank || who == 2;
        for (int again = 0; again < 2; again++) {
            memcpy(both, mine, COUNT * sizeof *both);
            expect("aliased", MPI_Allreduce(is_aliased ? both : mine, both, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                   MPI_SUCCESS);
            for (int i = 0; i < COUNT; i++) wrong |= both[i] != 2 * i + 1;
        }
    }
    expect("nothing to alias", MPI_Allreduce(mine, mine, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    free(both);
}

/* Errors of arguments and messages are raised on the call's communicator, and on no other. */
static int handled;

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    handled++;
}

static void on_error_elsewhere(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    fprintf(stderr, "errors: rank %d: the handler of another communicator was called\n", rank);
    wrong = 1;
}

/* Checks that the program gets the handler of MPI_COMM_SELF that it has set. */
static void check_self(MPI_Errhandler set) {
    MPI_Errhandler found;
    MPI_Comm copy;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &found);
    wrong |= found != set;
    if (found != MPI_ERRORS_ARE_FATAL) MPI_Errhandler_free(&found);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_get_errhandler(copy, &found);
    wrong |= found != set;
    if (found != MPI_ERRORS_ARE_FATAL) MPI_Errhandler_free(&found);
    MPI_Comm_free(&copy);
}

static void handlers(void) {
    MPI_Comm comm;
    MPI_Errhandler here, elsewhere;
    MPI_Comm_create_errhandler(on_error, &here);
    MPI_Comm_create_errhandler(on_error_elsewhere, &elsewhere);
    check_self(MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, elsewhere);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, elsewhere);
    check_self(elsewhere);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, here);
    expect("before", reduce(COUNT, comm), MPI_SUCCESS);
    int code = reduce(rank ? COUNT : COUNT / 2, comm);
    if (rank == 0) expect("the longer message", code, MPI_ERR_TRUNCATE);
    if (handled != (rank == 0)) wrong = 1;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, here);
    check_self(here);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&here);
    MPI_Errhandler_free(&elsewhere);
}

/* The MPI library reports invalid arguments of a call with a count for each rank; the communicator stays usable. */
static void counts(void) {
    int number[2] = {1, 1}, places[2] = {1, 0}, got[2] = {-1, -1};
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code = MPI_Allgatherv(&rank, 1, MPI_INT, got, number, places, MPI_DATATYPE_NULL, comm);
    expect("no datatype", code, MPI_ERR_TYPE);
    code = MPI_Allgatherv(&rank, 1, MPI_INT, got, number, places, MPI_INT, comm);
    expect("valid arguments", code, MPI_SUCCESS);
    if (got[0] != 1 || got[1] != 0) wrong = 1;
    MPI_Comm_free(&comm);
}

static int sends_fail;

/* Intercepts the library's sends. */
int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    typedef int function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static function *of_mpi;
    if (!of_mpi) *(void **)&of_mpi = dlsym(RTLD_NEXT, "PMPI_Isend");
    return sends_fail ? MPI_ERR_INTERN : of_mpi(buffer, count, type, to, tag, comm, request);
}

static void execute_badly(const tutti_plan *plan, MPI_Comm comm, tutti_program *program) {
    tutti_call call = {.sendbuf = mine, .recvbuf = sum, .recvcount = COUNT, .recvtype = MPI_INT, .op = MPI_SUM};
    char message[TUTTI_MESSAGE_SIZE] = "";
    sends_fail = 1;
    expect("a send that fails", LIBRARY(tutti_execute)(program, &call, message), MPI_ERR_INTERN);
    sends_fail = 0;
    if (!strstr(message, "all_reduce of 3 ranks by direct: rank 0: ")) {
        fprintf(stderr, "errors: the message is: %s\n", message);
        wrong = 1;
    }
    expect("after it", LIBRARY(tutti_execute)(program, &call, message), MPI_ERR_INTERN);
    tutti_program *another = compiled(plan, comm);
    expect("another program", LIBRARY(tutti_execute)(another, &call, message), MPI_ERR_INTERN);
    LIBRARY(tutti_program_free)(another);
}

/* Rank 0's sends fail after its receives are posted: the receives must be cancelled, or they would match later messages. */
static void abandoned(const char *path, int with_distance) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* MPICH reports leftover messages when `comm` is freed */
    tutti_distance distance = {.model = with_distance, .alpha_p = 1e-4};
    LIBRARY(tutti_emulate)(&distance);
    tutti_plan *plan = plan_of(path);
    tutti_program *program = compiled(plan, comm);
    if (rank == 0) execute_badly(plan, comm, program);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int tag = 1; tag <= 1 + with_distance; tag++) {
        int got = 0;
        for (int sent = 1; sent <= 2 && rank == 1; sent++) PMPI_Send(&sent, 1, MPI_INT, 0, tag, comm);
        if (rank == 0) PMPI_Recv(&got, 1, MPI_INT, 1, tag, comm, MPI_STATUS_IGNORE);
        if (rank == 0 && got != 1) {
            fprintf(stderr, "errors: tag %d: a receive of the schedule matched the message before %d\n", tag, got);
            wrong = 1;
        }
    }
    LIBRARY(tutti_program_free)(program);
    LIBRARY(tutti_plan_free)(plan);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = malloc(COUNT * sizeof *mine);
    sum = calloc(COUNT, sizeof *sum);
    for (int i = 0; i < COUNT; i++) mine[i] = i + rank;
    if (argc == 2 && strcmp(argv[1], "truncated") == 0)
        truncated();
    else if (argc == 2 && strcmp(argv[1], "aliased") == 0)
        aliased();
    else if (argc == 2 && strcmp(argv[1], "handlers") == 0)
        handlers();
    else if (argc == 2 && strcmp(argv[1], "counts") == 0)
        counts();
    else if (argc == 3)
        abandoned(argv[2], strcmp(argv[1], "abandoned-far") == 0);
    else
        wrong = 2;
    free(mine);
    free(sum);
    MPI_Finalize();
    return wrong;
}
