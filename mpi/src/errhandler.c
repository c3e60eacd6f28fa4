/* The error handler of MPI_COMM_SELF under MPICH. */
#include "errhandler.h"

#ifdef MPICH_VERSION
#include <pthread.h>

_Thread_local int tutti_errors_held, tutti_error_held;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Errhandler ours = MPI_ERRHANDLER_NULL;
static MPI_Errhandler users = MPI_ERRHANDLER_NULL; /* set by the program; if none, that of MPI_COMM_WORLD applies */

static void free_handler(MPI_Errhandler *handler)
{
    if (*handler != MPI_ERRHANDLER_NULL)
        PMPI_Errhandler_free(handler);
    *handler = MPI_ERRHANDLER_NULL;
}

/* Holds an error back, or calls the handler that the program has set, as MPICH would. */
static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    if (tutti_errors_held) {
        tutti_error_held = *code;
        return;
    }
    if (users == MPI_ERRHANDLER_NULL) {
        PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *code);
        return;
    }
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, users);
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, *code);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, ours);
}

/* Called with the lock held. Functions return their errors under MPI_ERRORS_RETURN, but not after a handler function. */
static void choose(void)
{
    MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
    int returns = (users == MPI_ERRHANDLER_NULL ? of_world : users) == MPI_ERRORS_RETURN;
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, returns ? MPI_ERRORS_RETURN : ours);
    free_handler(&of_world);
}

void tutti_errhandler_install(void)
{
    if (ours != MPI_ERRHANDLER_NULL || PMPI_Comm_get_errhandler(MPI_COMM_SELF, &users))
        return;
    if (users == MPI_ERRORS_ARE_FATAL)
        users = MPI_ERRHANDLER_NULL;
    if (PMPI_Comm_create_errhandler(on_error, &ours))
        return;
    choose();
}

void tutti_errhandler_remove(void)
{
    if (ours == MPI_ERRHANDLER_NULL)
        return;
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, users == MPI_ERRHANDLER_NULL ? MPI_ERRORS_ARE_FATAL : users);
    free_handler(&ours);
    free_handler(&users);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    pthread_mutex_lock(&lock);
    int error = PMPI_Comm_set_errhandler(comm, errhandler);
    if (!error && ours != MPI_ERRHANDLER_NULL && comm == MPI_COMM_SELF) {
        free_handler(&users);
        PMPI_Comm_get_errhandler(comm, &users); /* takes a reference: the program may free its handle */
    }
    if (!error && ours != MPI_ERRHANDLER_NULL && (comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD))
        choose();
    pthread_mutex_unlock(&lock);
    return error;
}

/* Communicators derived from MPI_COMM_SELF have inherited the library's handler. */
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    pthread_mutex_lock(&lock);
    int error = PMPI_Comm_get_errhandler(comm, errhandler);
    if (!error && ours != MPI_ERRHANDLER_NULL && (*errhandler == ours || comm == MPI_COMM_SELF)) {
        free_handler(errhandler);
        *errhandler = MPI_ERRORS_ARE_FATAL;
        if (users != MPI_ERRHANDLER_NULL) {
            PMPI_Comm_set_errhandler(MPI_COMM_SELF, users);
            error = PMPI_Comm_get_errhandler(MPI_COMM_SELF, errhandler);
            choose();
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}
#else
typedef int tutti_no_errhandler; /* ISO C forbids an empty translation unit */
#endif
