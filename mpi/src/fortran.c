/* Fortran functions that call PMPI functions, so that they never reach those of intercept.inc and job.c. In Open MPI these are
 * all functions. Its modules mpi and mpi_f08 pass the same arguments as mpif.h, all by reference. In MPICH these are the
 * functions of mpi_f08 without a buffer. */
#include "intercept.h"

#if defined(OPEN_MPI) || defined(MPICH_VERSION)
#include <stdlib.h>

static void set(MPI_Fint *ierror, int error)
{
    if (ierror)
        *ierror = (MPI_Fint)error;
}

/* Open MPI returns NULL for an invalid handle. */
static MPI_Comm communicator(const MPI_Fint *comm)
{
    MPI_Comm handle = PMPI_Comm_f2c(*comm);
    return handle ? handle : MPI_COMM_NULL;
}

/* Functions of mpi_f08 have separate names. If the program passes no error code, its address is NULL. Compilers append one or
 * two underscores to other names. Those that append none are not supported: a program may define mpi_init for itself. */
#define EXPORT __attribute__((visibility("default")))
#ifdef OPEN_MPI
#define SAME_AS(name) __attribute__((visibility("default"), alias("mpi_" #name "_")))
#define SUBROUTINE(name, parameters)                 \
    EXPORT void mpi_##name##_ parameters;            \
    void mpi_##name##__ parameters SAME_AS(name);    \
    void mpi_##name##_f08_ parameters SAME_AS(name); \
    void mpi_##name##_ parameters
#else
#define SUBROUTINE(name, parameters)            \
    EXPORT void mpi_##name##_f08_ parameters;   \
    void mpi_##name##_f08_ parameters
#endif

/* --- the job, and communicators ------------------------------------------------------------------------------------------ */

SUBROUTINE(init, (MPI_Fint *ierror))
{
    set(ierror, MPI_Init(NULL, NULL));
}

SUBROUTINE(init_thread, (const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierror))
{
    int level = 0, error = MPI_Init_thread(NULL, NULL, (int)*required, &level);
    *provided = (MPI_Fint)level;
    set(ierror, error);
}

SUBROUTINE(finalize, (MPI_Fint *ierror))
{
    set(ierror, MPI_Finalize());
}

static void release(MPI_Fint *comm, MPI_Fint *ierror, int (*end)(MPI_Comm *))
{
    MPI_Comm handle = communicator(comm);
    int error = end(&handle);
    if (!error)
        *comm = PMPI_Comm_c2f(handle);
    set(ierror, error);
}

SUBROUTINE(comm_free, (MPI_Fint *comm, MPI_Fint *ierror))
{
    release(comm, ierror, MPI_Comm_free);
}

SUBROUTINE(comm_disconnect, (MPI_Fint *comm, MPI_Fint *ierror))
{
    release(comm, ierror, MPI_Comm_disconnect);
}

#ifdef MPICH_VERSION
/* --- functions without a buffer ----------------------------------------------------------------------------------------- */

SUBROUTINE(barrier, (const MPI_Fint *comm, MPI_Fint *ierror))
{
    set(ierror, MPI_Barrier(communicator(comm)));
}

SUBROUTINE(ibarrier, (const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror))
{
    MPI_Request handle = MPI_REQUEST_NULL;
    set(ierror, MPI_Ibarrier(communicator(comm), &handle));
    *request = PMPI_Request_c2f(handle);
}

#if MPI_VERSION >= 4
SUBROUTINE(barrier_init, (const MPI_Fint *comm, const MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror))
{
    MPI_Request handle = MPI_REQUEST_NULL;
    set(ierror, MPI_Barrier_init(communicator(comm), PMPI_Info_f2c(*info), &handle));
    *request = PMPI_Request_c2f(handle);
}
#endif

SUBROUTINE(comm_set_errhandler, (const MPI_Fint *comm, const MPI_Fint *errhandler, MPI_Fint *ierror))
{
    set(ierror, MPI_Comm_set_errhandler(communicator(comm), PMPI_Errhandler_f2c(*errhandler)));
}

SUBROUTINE(comm_get_errhandler, (const MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror))
{
    MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
    set(ierror, MPI_Comm_get_errhandler(communicator(comm), &handle));
    *errhandler = PMPI_Errhandler_c2f(handle);
}
#endif

#ifdef OPEN_MPI
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

/* --- sentinels: addresses of common blocks ------------------------------------------------------------------------- */
#pragma GCC visibility push(default)
#define SENTINEL(name) extern char name##_ __attribute__((weak)), name##__ __attribute__((weak))
SENTINEL(mpi_fortran_in_place);
SENTINEL(mpi_fortran_bottom);
#pragma GCC visibility pop
#define IS(address, name) ((address) && ((address) == &name##_ || (address) == &name##__))

static void *received(const void *buffer)
{
    if (IS(buffer, mpi_fortran_in_place)) /* of a scatter */
        return MPI_IN_PLACE;
    return IS(buffer, mpi_fortran_bottom) ? MPI_BOTTOM : (void *)(uintptr_t)buffer;
}

static const void *sent(const void *buffer)
{
    return received(buffer);
}

/* --- the MPI library's functions -------------------------------------------------------------------------------------- */

static int open_binding(struct dl_phdr_info *object, size_t size, void *handle)
{
    (void)size;
    const char *base = strrchr(object->dlpi_name, '/');
    if (base && strstr(base, "_mpifh"))
        *(void **)handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return *(void **)handle != NULL;
}

/* Finds a function of libmpi_mpifh, also where a module of Python has loaded it for itself alone. */
static void *binding(const char *name, _Atomic(void *) *cache)
{
    void *function = atomic_load_explicit(cache, memory_order_acquire), *handle = NULL;
    if (function)
        return function;
    function = dlsym(RTLD_NEXT, name);
    if (!function && dl_iterate_phdr(open_binding, &handle)) {
        function = dlsym(handle, name);
        dlclose(handle);
    }
    if (!function) {
        fprintf(stderr, "tutti: %s: not found in this process: expected libmpi_mpifh, Open MPI's library for Fortran\n", name);
        abort();
    }
    atomic_store_explicit(cache, function, memory_order_release);
    return function;
}

/* --- all collectives ---------------------------------------------------------------------------------------------------- */

#define FORTRAN
#define CONVERTED
#include "language.inc"

/* Fortran functions convert handles even if they forward a call. So does this, and calls the C function. */
#define PERFORMED(Name, name, collective, fields, parameters, arguments) \
    FUNCTION(Name, name, parameters)                                     \
    {                                                                          \
        set(ierror, MPI_##Name arguments);                                     \
    }

/* The type of the other functions is that of the function of the MPI library. */
#define FUNCTION(Name, name, parameters) SUBROUTINE(name, (LISTED parameters, MPI_Fint *ierror))
#define RETURN(error)         \
    do {                      \
        set(ierror, (error)); \
        return;               \
    } while (0)
#define FORWARD(Name, name, arguments) FORWARDED(name, (LISTED arguments, ierror))
#define FORWARDED(name, arguments)                                                             \
    do {                                                                                       \
        static _Atomic(void *) cache;                                                          \
        ((__typeof__(&mpi_##name##_))(uintptr_t)binding("pmpi_" #name "_", &cache)) arguments; \
    } while (0)
#define COUNT MPI_Fint
#define DISPL MPI_Fint
#define WIDENED widened
#include "intercept.inc"

#undef CONVERTED
#include "language.inc"
#define EXPANDED(...) PASS(__VA_ARGS__)
#define PASS(Name, name, reason, parameters, arguments)                                \
    SUBROUTINE(name, (LISTED parameters, MPI_Fint *ierror))                            \
    {                                                                                        \
        if (tutti_job_plan)                                                                  \
            tutti_communicator_passed(communicator(comm), TUTTI_FN_##Name, TUTTI_##reason); \
        FORWARDED(name, (LISTED arguments, ierror));                                         \
    }
#define COUNT MPI_Fint
#define DISPL MPI_Fint
#define VARIANT(name) name
#include "variants.inc"
#endif
#endif
