/* Reads the job file, with one line per setting, `group` and `case`; rank 0 broadcasts the text. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char *host_name(void)
{
    static char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    PMPI_Get_processor_name(name, &length);
    return name;
}

static char *read_file(const char *path, int64_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        bench_fail("cannot read the job file %s on %s: set TUTTI_SHARED to a folder that all hosts share", path, host_name());
    *length = ftell(file);
    rewind(file);
    char *text = malloc((size_t)*length + 1);
    if (!text || fread(text, 1, (size_t)*length, file) != (size_t)*length)
        bench_fail("cannot read the job file %s on %s", path, host_name());
    fclose(file);
    return text;
}

static char *shared_text(const char *path, MPI_Comm comm)
{
    int rank;
    int64_t length = 0;
    char *text = NULL;
    PMPI_Comm_rank(comm, &rank);
    if (rank == 0)
        text = read_file(path, &length);
    PMPI_Bcast(&length, 1, MPI_INT64_T, 0, comm);
    if (rank != 0)
        text = malloc((size_t)length + 1);
    if (!text)
        bench_fail("out of memory for the job");
    PMPI_Bcast(text, (int)length, MPI_BYTE, 0, comm);
    text[length] = 0;
    return text;
}

static void add_group(bench_job *job, const char *line)
{
    bench_group group = {.first = job->n_cases};
    int collective;
    long long count;
    if (sscanf(line, "group %d %lld %d %d %d", &collective, &count, &group.type, &group.op, &group.root) != 5)
        bench_fail("job file: invalid group `%s`", line);
    group.collective = (enum tutti_collective)collective;
    group.count = count;
    job->groups = realloc(job->groups, sizeof(bench_group) * (size_t)(job->n_groups + 1));
    if (!job->groups)
        bench_fail("out of memory for the job");
    job->groups[job->n_groups++] = group;
}

static void add_case(bench_job *job, const char *line)
{
    int implementation;
    unsigned schedule;
    if (sscanf(line, "case %d %u", &implementation, &schedule) != 2 || !job->n_groups)
        bench_fail("job file: invalid case `%s`", line);
    job->cases = realloc(job->cases, sizeof(bench_case) * (size_t)(job->n_cases + 1));
    if (!job->cases)
        bench_fail("out of memory for the job");
    job->cases[job->n_cases++] =
        (bench_case){.implementation = (enum bench_implementation)implementation, .schedule = schedule};
    job->groups[job->n_groups - 1].cases++;
}

static int set_number(bench_job *job, const char *key, int64_t value)
{
    const struct {
        const char *key;
        int *number;
        int64_t *time;
    } settings[] = {
        {"blocks", &job->blocks, NULL},     {"each", &job->each, NULL},
        {"warmup", &job->warmup, NULL},     {"check", &job->check, NULL},
        {"quiet", &job->quiet, NULL},       {"aligned", &job->aligned, NULL},
        {"samples", &job->samples, NULL},
        {"peers", &job->peers, NULL},       {"probes", &job->probes, NULL},
        {"counting", &job->counting, NULL}, {"once", &job->once, NULL},
        {"probe_bytes", NULL, &job->probe_bytes},
        {"tolerance_ns", NULL, &job->tolerance_ns}, {"window_ns", NULL, &job->window_ns},
        {"quiet_tolerance_ns", NULL, &job->quiet_tolerance_ns},
        {"quiet_window_ns", NULL, &job->quiet_window_ns},
        {"poll_ns", NULL, &job->poll_ns},   {"flight_ns", NULL, &job->flight_ns},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (strcmp(key, settings[i].key))
            continue;
        if (settings[i].number)
            *settings[i].number = (int)value;
        else
            *settings[i].time = value;
        return 1;
    }
    return 0;
}

static void set_distance(bench_job *job, const char *line)
{
    tutti_distance *d = &job->distance;
    if (sscanf(line, "distance %d %lf %lf %lf %lf %lf %lf %lf", &d->model, &d->alpha_p, &d->alpha_r, &d->beta,
               &d->latency, &d->overhead, &d->gap, &d->byte) != 8)
        bench_fail("job file: invalid distance `%s`", line);
}

static void parse_line(bench_job *job, const char *line)
{
    char key[32];
    long long value;
    if (!strncmp(line, "group ", 6))
        add_group(job, line);
    else if (!strncmp(line, "case ", 5))
        add_case(job, line);
    else if (!strncmp(line, "control ", 8))
        bench_controls_add(job, line);
    else if (!strncmp(line, "distance ", 9))
        set_distance(job, line);
    else if (!strncmp(line, "out ", 4))
        snprintf(job->out, sizeof job->out, "%s", line + 4);
    else if (!strncmp(line, "plan ", 5))
        snprintf(job->plan, sizeof job->plan, "%s", line + 5);
    else if (sscanf(line, "%31s %lld", key, &value) != 2 || !set_number(job, key, value))
        bench_fail("job file: unknown setting `%s`", line);
}

bench_job *bench_read_job(const char *path, MPI_Comm comm)
{
    char *text = shared_text(path, comm), *rest = NULL;
    bench_job *job = calloc(1, sizeof *job);
    if (!job)
        bench_fail("out of memory for the job");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        parse_line(job, line);
    free(text);
    return job;
}
