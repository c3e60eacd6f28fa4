/* tutti_mpi_bench JOB: runs the measurements of a job file. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

static char error_path[4200]; /* empty until the job has been read */

_Noreturn void bench_fail(const char *format, ...)
{
    const struct timespec pause = {.tv_nsec = 200000000}; /* lets the launcher forward stderr */
    char message[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    fprintf(stderr, "tutti_mpi_bench: %s\n", message);
    FILE *file = error_path[0] ? fopen(error_path, "a") : NULL;
    if (file) {
        fprintf(file, "tutti_mpi_bench: %s\n", message);
        fclose(file);
    }
    fflush(NULL);
    nanosleep(&pause, NULL);
    PMPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

void bench_check(int error, const char *what)
{
    if (error == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (error > 0)
        PMPI_Error_string(error, text, &length);
    bench_fail("%s failed: %s (%d)", what, length ? text : "an error of the library", error);
}

/* Writes the first line of the file: the conditions of the samples. */
static void write_header(const bench_run *run)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], host[MPI_MAX_PROCESSOR_NAME];
    int length;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\r\n")] = 0;
    for (char *at = version; *at; at++)
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = ' ';
    PMPI_Get_processor_name(host, &length);
    fprintf(run->out, "{\"kind\":\"run\",\"ranks\":%d,\"mpi\":\"%s\",\"host\":\"%s\",\"hosts\":%d,\"crowded\":%d,\"quiet\":%d,"
            "\"emulated\":%d}\n",
            run->ranks, version, host, run->hosts, run->crowded, run->job->quiet, run->job->distance.model != 0);
    fflush(run->out);
}

static void open_out(bench_run *run)
{
    if (run->rank != 0)
        return;
    run->out = fopen(run->job->out, "w");
    if (!run->out)
        bench_fail("cannot write to %s", run->job->out);
    write_header(run);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv); /* libtutti_mpi's, which initialises the library */
    if (argc != 2)
        bench_fail("expected one argument, the job file; `tutti mpi bench` writes it");
    bench_run run = {.comm = MPI_COMM_NULL};
    PMPI_Comm_dup(MPI_COMM_WORLD, &run.comm);
    PMPI_Comm_rank(run.comm, &run.rank);
    PMPI_Comm_size(run.comm, &run.ranks);
    bench_job *job = bench_read_job(argv[1], run.comm);
    run.job = job;
    snprintf(error_path, sizeof error_path, "%s.error", job->out);
    bench_inspect_hosts(&run, job);
    open_out(&run);
    char message[TUTTI_MESSAGE_SIZE] = "";
    if (job->plan[0] && tutti_plan_read(job->plan, &run.plan, message))
        bench_fail("%s", message);
    if (tutti_emulate(&job->distance))
        bench_fail("job file: invalid distance");
    bench_controls_open(job);
    if (job->counting)
        bench_once(&run);
    else
        bench_blocks(&run);
    if (job->peers)
        bench_multicasts(&run);
    if (job->probes)
        bench_probes(&run);
    if (run.out && fclose(run.out))
        bench_fail("cannot write to %s", job->out);
    bench_controls_close(job);
    tutti_plan_free(run.plan);
    free(job->controls);
    free(job->groups);
    free(job->cases);
    free(job);
    PMPI_Comm_free(&run.comm);
    MPI_Finalize();
    return 0;
}
