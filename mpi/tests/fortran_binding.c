/* Replaces libmpi_mpifh, Open MPI's Fortran functions, in tests without a Fortran compiler. As in Open MPI, each function
 * converts handles and addresses and calls a PMPI function, and the module mpi_f08 may pass no error code. */
#include <mpi.h>

extern char mpi_fortran_in_place_;

#define BINDING(name, parameters)                                                \
    void pmpi_##name##_ parameters;                                              \
    void mpi_##name##_ parameters __attribute__((alias("pmpi_" #name "_")));     \
    void mpi_##name##__ parameters __attribute__((alias("pmpi_" #name "_")));    \
    void mpi_##name##_f08_ parameters __attribute__((alias("pmpi_" #name "_"))); \
    void pmpi_##name##_ parameters

static const void *sent(const void *buffer) {
    return buffer == &mpi_fortran_in_place_ ? MPI_IN_PLACE : buffer;
}

static void set(MPI_Fint *ierror, int error) {
    if (ierror) *ierror = error;
}

BINDING(init, (MPI_Fint *ierror)) { set(ierror, PMPI_Init(0, 0)); }

BINDING(finalize, (MPI_Fint *ierror)) { set(ierror, PMPI_Finalize()); }

BINDING(comm_free, (MPI_Fint *comm, MPI_Fint *ierror)) {
    MPI_Comm handle = PMPI_Comm_f2c(*comm);
    set(ierror, PMPI_Comm_free(&handle));
    *comm = PMPI_Comm_c2f(handle);
}

BINDING(allreduce, (const void *sendbuf, void *recvbuf, const MPI_Fint *count, const MPI_Fint *datatype, const MPI_Fint *op,
                    const MPI_Fint *comm, MPI_Fint *ierror)) {
    set(ierror, PMPI_Allreduce(sent(sendbuf), recvbuf, *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                               PMPI_Comm_f2c(*comm)));
}

BINDING(allgatherv, (const void *sendbuf, const MPI_Fint *sendcount, const MPI_Fint *sendtype, void *recvbuf,
                     const MPI_Fint recvcounts[], const MPI_Fint displs[], const MPI_Fint *recvtype, const MPI_Fint *comm,
                     MPI_Fint *ierror)) {
    set(ierror, PMPI_Allgatherv(sent(sendbuf), *sendcount, PMPI_Type_f2c(*sendtype), recvbuf, recvcounts, displs,
                                PMPI_Type_f2c(*recvtype), PMPI_Comm_f2c(*comm)));
}

BINDING(reduce_scatter, (const void *sendbuf, void *recvbuf, const MPI_Fint recvcounts[], const MPI_Fint *datatype,
                         const MPI_Fint *op, const MPI_Fint *comm, MPI_Fint *ierror)) {
    set(ierror, PMPI_Reduce_scatter(sent(sendbuf), recvbuf, recvcounts, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                                    PMPI_Comm_f2c(*comm)));
}

BINDING(iallreduce, (const void *sendbuf, void *recvbuf, const MPI_Fint *count, const MPI_Fint *datatype, const MPI_Fint *op,
                     const MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierror)) {
    MPI_Request handle;
    set(ierror, PMPI_Iallreduce(sent(sendbuf), recvbuf, *count, PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                                PMPI_Comm_f2c(*comm), &handle));
    *request = PMPI_Request_c2f(handle);
}
