/* Collectives that are always forwarded to the MPI library, each counted with the reason. */
#include "communicator.h"
#include "functions.h"

#define PASS(name, reason, parameters, arguments)               \
    int MPI_##name parameters                                   \
    {                                                           \
        if (tutti_job_plan)                                     \
            tutti_communicator_passed(comm, TUTTI_FN_##name, TUTTI_##reason); \
        return PMPI_##name arguments;                           \
    }
#include "passed.inc"
#undef PASS

const char *const tutti_function_names[TUTTI_FUNCTIONS] = {
#define NAME(name) "MPI_" #name,
    TUTTI_COVERED_FUNCTIONS(NAME)
#undef NAME
#define PASS(name, reason, parameters, arguments) "MPI_" #name,
#include "passed.inc"
#undef PASS
};
