/* The process under a plan: what MPI_Init sets up and MPI_Finalize reports. */
#ifndef TUTTI_JOB_H
#define TUTTI_JOB_H

#include "demand.h"
#include "settings.h"

#include <stdatomic.h>
#include <stdio.h>

/* The plan that processes have agreed on, if there is one: otherwise all calls pass. */
extern const tutti_plan *tutti_job_plan;

/* One call of function number `function` (functions.h) went to the MPI underneath. */
void tutti_job_passed(int function, enum tutti_reason reason);
void tutti_job_passed_calls(int function, enum tutti_reason reason, uint64_t calls);

/* Calls that schedule number `schedule` carried out on a communicator whose calls this process counts. */
void tutti_job_covered(uint32_t schedule, uint64_t calls);

/* Report of what was counted; collective over MPI_COMM_WORLD. Of processes that were spawned it has a name of its own. */
void tutti_report(const tutti_settings *settings, const tutti_plan *plan, _Atomic uint64_t *covered,
                  _Atomic uint64_t *passed, int were_spawned);

/* Report of a job in which the library does nothing; local. */
void tutti_report_off(const tutti_settings *settings, const tutti_plan *plan, const char *why, int were_spawned);

#endif
