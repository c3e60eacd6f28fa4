/* The state of a process that runs with a plan: set up at MPI_Init, reported at MPI_Finalize. */
#ifndef TUTTI_JOB_H
#define TUTTI_JOB_H

#include "demand.h"
#include "settings.h"

#include <stdatomic.h>
#include <stdio.h>

/* The plan that the processes have agreed on. NULL forwards all calls. */
extern const tutti_plan *tutti_job_plan;

/* Counts calls of function `function` (functions.h) that were forwarded to the MPI library. */
void tutti_job_passed(int function, enum tutti_reason reason);
void tutti_job_passed_calls(int function, enum tutti_reason reason, uint64_t calls);

/* Counts calls that schedule `schedule` performed, on a communicator whose calls this process counts. */
void tutti_job_covered(uint32_t schedule, uint64_t calls);

/* Reports the counts; collective over MPI_COMM_WORLD. Spawned processes write a separate file. */
void tutti_report(const tutti_settings *settings, const tutti_plan *plan, _Atomic uint64_t *covered,
                  _Atomic uint64_t *passed, int were_spawned);

/* Reports a job in which the library is switched off; local. */
void tutti_report_off(const tutti_settings *settings, const tutti_plan *plan, const char *why, int were_spawned);

#endif
