/* The MPI functions of the collectives that schedules perform. */
#include "intercept.h"

#include "errhandler.h"
#include "failure.h"

#include <stdio.h>
#include <stdlib.h>

/* Calls the user communicator's error handler, as the MPI library does. */
static int call_errhandler(tutti_communicator *of, int error)
{
    if (error < 0)
        error = tutti_failure_class(error);
    int held = tutti_errors_hold(0);
    PMPI_Comm_call_errhandler(of->user, error);
    tutti_errors_hold(held);
    return error;
}

/* Handles an error after which messages may still be in flight: all further calls fail with it. */
static int fail(tutti_communicator *of, int error, const char *message)
{
    char text[MPI_MAX_ERROR_STRING];
    fprintf(stderr, "tutti: %s\n", *message ? message : tutti_failure_text(error, text));
    of->broken = tutti_failure_class(error);
    return call_errhandler(of, error);
}

/* Prepares the program of a schedule for a call. */
static int bind(tutti_communicator *of, uint32_t schedule, const tutti_demand *demand, const tutti_call *call,
                char *message)
{
    tutti_program *program = NULL;
    of->last = NULL;
    int error = tutti_communicator_program(of, schedule, &program, message);
    if (!error)
        error = tutti_program_bind(program, demand, call, message);
    if (!error)
        of->last = program;
    return error;
}

static int run(tutti_communicator *of)
{
    char message[TUTTI_MESSAGE_SIZE];
    message[0] = 0;
    of->last->calls++;
    int error = tutti_program_run(of->last, message);
    return error ? fail(of, error, message) : 0;
}

/* Performs a call that the plan covers, with its error code in *error; or returns why that is impossible. */
static enum tutti_reason perform(tutti_communicator *of, uint32_t schedule, const tutti_demand *demand,
                                 const tutti_call *call, int *error)
{
    char message[TUTTI_MESSAGE_SIZE];
    message[0] = 0;
    if (of->broken) {
        *error = call_errhandler(of, of->broken);
        return TUTTI_NO_REASON;
    }
    int failed = of->is_open ? 0 : tutti_communicator_open(of, message);
    if (!failed && !of->is_open)
        return of->refusal;
    if (!failed)
        failed = bind(of, schedule, demand, call, message);
    *error = failed ? fail(of, failed, message) : run(of);
    return TUTTI_NO_REASON;
}

/* Whether the call equals the last one performed: then its program is bound, and no lookup is needed. */
static int is_repeated(const tutti_communicator *of, uint32_t collective, const tutti_call *call)
{
    return of->last && of->last->info.collective == collective && tutti_program_is_bound(of->last, call) && !of->broken;
}

/* Selects the schedule of the first rule that can perform the call, or returns why no schedule can. */
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

/* Returns why the plan does not cover a call; for TUTTI_NO_REASON sets the demand and the schedule. */
static enum tutti_reason find(tutti_communicator *of, uint32_t collective, const tutti_call *call, tutti_demand *demand,
                              uint32_t *schedule)
{
    if (of->refusal)
        return of->refusal;
    if (of->rule_count[collective] == 0)
        return tutti_plan_has(tutti_job_plan, collective) ? TUTTI_NO_RULE_RANKS : TUTTI_NO_RULE;
    if (tutti_reduces(collective) && !of->reduces)
        return TUTTI_NO_LOCAL_REDUCTION;
    if (tutti_demand_of(collective, call, of->rank, of->size, &of->cache, demand))
        return demand->refusal;
    return choose(of, demand, schedule);
}

/* Whether the reason holds for the next call with the same arguments, whatever its buffers. With a count for each rank, their
 * sum is an argument, and the counts are not. */
static int lasts(enum tutti_reason reason, const tutti_call *call, const tutti_demand *demand)
{
    switch (reason) {
    case TUTTI_NO_RULE:
    case TUTTI_NO_RULE_RANKS:
        return 1;
    case TUTTI_NO_RULE_SIZE:
        return demand->lasting;
    case TUTTI_ORDER:
    case TUTTI_OTHER_BITS:
    case TUTTI_UNEQUAL_CHUNKS:
    case TUTTI_OTHER_ROOT:
        return demand->lasting && !call->recvcounts;
    default:
        return 0;
    }
}

static void remember_passed(tutti_communicator *of, int function, enum tutti_reason reason, const tutti_call *call)
{
    tutti_communicator_flush(of);
    of->passed = (tutti_passed_call){.function = function,
                                     .sent_in_place = call->sendbuf == MPI_IN_PLACE,
                                     .received_in_place = call->recvbuf == MPI_IN_PLACE,
                                     .reason = reason,
                                     .call = *call};
}

/* Performs the call by a schedule, with its error code in *error, and returns 1; otherwise counts it as forwarded. */
static int try(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error)
{
    tutti_communicator *of = tutti_communicator_of(comm);
    if (of && is_repeated(of, collective, call)) {
        *error = run(of);
        return 1;
    }
    if (of && tutti_is_forwarded_again(of, function, call)) {
        of->passed.calls++;
        return 0;
    }
    tutti_demand demand;
    uint32_t schedule = 0;
    enum tutti_reason reason = of ? find(of, collective, call, &demand, &schedule) : TUTTI_ARGUMENTS;
    if (reason == TUTTI_NO_REASON)
        reason = perform(of, schedule, &demand, call, error);
    if (reason == TUTTI_NO_REASON)
        return 1;
    tutti_communicator_passed(comm, function, reason);
    if (of && lasts(reason, call, &demand))
        remember_passed(of, function, reason, call);
    return 0;
}

int tutti_perform(int function, uint32_t collective, const tutti_call *call, MPI_Comm comm, int *error)
{
    tutti_errors_hold(1);
    int performed = try(function, collective, call, comm, error);
    tutti_errors_hold(0);
    return performed;
}

#include "language.inc"

#define COUNT int
#define DISPL int
#define FUNCTION(Name, name, parameters) int MPI_##Name parameters
#define RETURN(error) return error
#define FORWARD(Name, name, arguments) return PMPI_##Name arguments
#define WIDENED widened
#include "intercept.inc"

#if MPI_VERSION >= 4
#define LARGE_COUNTS
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define FUNCTION(Name, name, parameters) int MPI_##Name##_c parameters
#define RETURN(error) return error
#define FORWARD(Name, name, arguments) return PMPI_##Name##_c arguments
#define WIDENED widened_large
#include "intercept.inc"
#endif
