/* Calls the functions of the module mpi_f08 without a buffer, which call PMPI functions in MPICH. Exits with 4 if a result is
 * wrong. BINDING defines MPICH's functions instead, for a library. */
#include <mpi.h>

#ifdef BINDING
#define DEFINED(body) body
#else
#define DEFINED(body) ;
#endif

void mpi_init_f08_(MPI_Fint *ierror) DEFINED({ *ierror = PMPI_Init(0, 0); })

void mpi_finalize_f08_(MPI_Fint *ierror) DEFINED({ *ierror = PMPI_Finalize(); })

void mpi_barrier_f08_(const MPI_Fint *comm, MPI_Fint *ierror) DEFINED({ *ierror = PMPI_Barrier(*comm); })

void mpi_ibarrier_f08_(const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror) DEFINED({
    *ierror = PMPI_Ibarrier(*comm, request);
})

void mpi_comm_free_f08_(MPI_Fint *comm, MPI_Fint *ierror) DEFINED({ *ierror = PMPI_Comm_free(comm); })

void mpi_comm_set_errhandler_f08_(const MPI_Fint *comm, const MPI_Fint *errhandler, MPI_Fint *ierror) DEFINED({
    *ierror = PMPI_Comm_set_errhandler(*comm, *errhandler);
})

void mpi_comm_get_errhandler_f08_(const MPI_Fint *comm, MPI_Fint *errhandler, MPI_Fint *ierror) DEFINED({
    *ierror = PMPI_Comm_get_errhandler(*comm, errhandler);
})

#ifndef BINDING
int main(void) {
    int rank, ranks, sum = -1;
    MPI_Fint ierror = -1, world, self, request, handler = MPI_ERRORS_RETURN, got = -1;
    mpi_init_f08_(&ierror);
    int wrong = ierror != MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    world = MPI_Comm_c2f(MPI_COMM_WORLD);
    self = MPI_Comm_c2f(MPI_COMM_SELF);
    mpi_comm_get_errhandler_f08_(&self, &got, &ierror);
    wrong |= got != MPI_ERRORS_ARE_FATAL;
    mpi_comm_set_errhandler_f08_(&self, &handler, &ierror);
    mpi_comm_get_errhandler_f08_(&self, &got, &ierror);
    wrong |= got != MPI_ERRORS_RETURN;
    mpi_barrier_f08_(&world, &ierror);
    mpi_ibarrier_f08_(&world, &request, &ierror);
    MPI_Request handle = MPI_Request_f2c(request);
    MPI_Wait(&handle, MPI_STATUS_IGNORE);
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other);
    wrong |= sum != ranks * (ranks - 1) / 2;
    MPI_Fint freed = MPI_Comm_c2f(other);
    mpi_comm_free_f08_(&freed, &ierror);
    wrong |= freed != MPI_Comm_c2f(MPI_COMM_NULL) || ierror != MPI_SUCCESS;
    mpi_finalize_f08_(&ierror);
    return wrong ? 4 : 0;
}
#endif
