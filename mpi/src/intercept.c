/* The collectives that schedules carry out, in front of the MPI's own. */
#include "communicator.h"
#include "functions.h"

#include <stdio.h>
#include <stdlib.h>

/* Hands an error to the user's communicator's handler, as the MPI does with its own. */
static int raise(tutti_communicator *of, int error, const char *message)
{
    if (error < 0) {
        fprintf(stderr, "tutti: %s\n", message);
        error = error == TUTTI_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
    }
    of->broken = error;
    PMPI_Comm_call_errhandler(of->user, error);
    return error;
}

static int run(tutti_communicator *of, uint32_t schedule, const tutti_demand *demand)
{
    char message[TUTTI_MESSAGE_ROOM];
    message[0] = 0;
    tutti_program *program;
    int error = tutti_communicator_program(of, schedule, &program, message);
    if (!error) {
        program->calls++;
        error = tutti_program_run(program, demand, message);
    }
    return error ? raise(of, error, message) : 0;
}

/* The first rule's schedule that can do it, or why there is none. */
static enum tutti_reason choose(const tutti_communicator *of, const tutti_demand *demand, uint32_t *schedule)
{
    uint32_t collective = demand->collective, count = of->rule_count[collective];
    enum tutti_reason reason = TUTTI_NO_RULE_SIZE;
    for (uint32_t i = 0; i < count; i++) {
        const tutti_rule *rule = &tutti_job_plan->rules[of->rules[collective][i]];
        if (demand->bytes < rule->smallest || demand->bytes > rule->largest)
            continue;
        reason = tutti_refusal(&tutti_job_plan->schedules[rule->schedule], demand);
        if (reason == TUTTI_NO_REASON) {
            *schedule = rule->schedule;
            break;
        }
    }
    return reason;
}

/* Carries out a call where the plan covers it, with its outcome in *error; otherwise counts it and returns 0. */
static int intercept(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error)
{
    if (!tutti_job_plan)
        return 0;
    tutti_communicator *of = tutti_communicator_of(comm);
    if (!of)
        return 0;
    tutti_demand demand;
    uint32_t schedule = 0;
    enum tutti_reason reason = TUTTI_NO_RULE_RANKS;
    if (of->inter)
        reason = TUTTI_INTERCOMMUNICATOR;
    else if (of->rule_count[collective] > 0)
        reason = tutti_demand_of(collective, call, of->rank, of->size, &of->known, &demand)
                     ? TUTTI_ARGUMENTS
                     : choose(of, &demand, &schedule);
    if (reason != TUTTI_NO_REASON) {
        tutti_job_passed_by(function, reason, of->rank);
        return 0;
    }
    *error = of->broken ? raise(of, of->broken, "an earlier collective failed") : run(of, schedule, &demand);
    return 1;
}

#define INTERCEPT(name, collective, arguments)                                                          \
    int error;                                                                                          \
    return intercept(TUTTI_FN_##name, collective, &call, comm, &error) ? error : PMPI(name) arguments

#define COUNT int
#define MPI(name) MPI_##name
#define PMPI(name) PMPI_##name
#define WIDENED widened
#include "intercept.inc"
#undef COUNT
#undef MPI
#undef PMPI
#undef WIDENED

#if MPI_VERSION >= 4
#define COUNT MPI_Count
#define MPI(name) MPI_##name##_c
#define PMPI(name) PMPI_##name##_c
#define WIDENED widened_large
#include "intercept.inc"
#undef COUNT
#undef MPI
#undef PMPI
#undef WIDENED
#endif

int MPI_Barrier(MPI_Comm comm)
{
    tutti_call call = {.root = 0};
    int error;
    return intercept(TUTTI_FN_Barrier, TUTTI_BARRIER, &call, comm, &error) ? error : PMPI_Barrier(comm);
}
