/* The process under a plan: what MPI_Init sets up and MPI_Finalize reports. */
#ifndef TUTTI_JOB_H
#define TUTTI_JOB_H

#include "demand.h"

#include <stdatomic.h>
#include <stdio.h>

/* The plan, if there is one: otherwise all calls pass. */
extern const tutti_plan *tutti_job_plan;

/* One call of function number `function` (tutti_functions.h) by a member of `comm` that went to the MPI underneath. */
void tutti_job_passed(int function, enum tutti_reason reason, MPI_Comm comm);

/* The same where the rank is known already. */
void tutti_job_passed_by(int function, enum tutti_reason reason, int rank);

/* Calls that schedule number `schedule` carried out on a communicator that this process is rank 0 of. */
void tutti_job_covered(uint32_t schedule, uint64_t calls);

/* After the MPI has started; `world` is MPI_COMM_NULL where only a session was opened. Does not return on a bad plan. */
void tutti_job_begin(MPI_Comm world);

/* Before the MPI ends. */
void tutti_job_end(MPI_Comm world);

/* Report of what was counted; collective over `world`. */
void tutti_report(const tutti_plan *plan, _Atomic uint64_t *covered, _Atomic uint64_t *passed, MPI_Comm world);

#endif
