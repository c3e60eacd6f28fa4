/* Reports covered and forwarded calls, as JSON. */
#include "communicator.h"
#include "functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(out, "\\u%04x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void write_mpi(FILE *out)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = 0;
    write_string(out, version);
}

static uint64_t write_covered(FILE *out, const tutti_plan *plan, const uint64_t *covered)
{
    uint64_t all = 0;
    fputs("\"covered\": [", out);
    for (uint32_t i = 0; i < plan->schedule_count; i++) {
        if (covered[i] == 0)
            continue;
        const tutti_schedule_info *info = &plan->schedules[i];
        fprintf(out, "%s\n    {\"collective\": \"%s\", \"ranks\": %u, \"schedule\": ", all ? "," : "",
                tutti_collective_name(info->collective), info->ranks);
        write_string(out, info->name);
        fprintf(out, ", \"calls\": %llu}", (unsigned long long)covered[i]);
        all += covered[i];
    }
    fputs(all ? "\n  ]" : "]", out);
    return all;
}

static void write_passed(FILE *out, const uint64_t *passed)
{
    int some = 0;
    fputs("\"passed\": [", out);
    for (int i = 0; i < TUTTI_FUNCTIONS * TUTTI_REASONS; i++) {
        if (passed[i] == 0)
            continue;
        fprintf(out, "%s\n    {\"call\": \"%s\", \"reason\": \"%s\", \"calls\": %llu}", some ? "," : "",
                tutti_function_names[i / TUTTI_REASONS], tutti_reason_text((enum tutti_reason)(i % TUTTI_REASONS)),
                (unsigned long long)passed[i]);
        some = 1;
    }
    fputs(some ? "\n  ]" : "]", out);
}

static void write_matrix(FILE *out, const char *name, const uint64_t *values, int ranks, int first)
{
    fprintf(out, ",\n  \"%s\": [", name);
    for (int from = 0; from < ranks; from++) {
        fputs(from ? ",\n    [" : "\n    [", out);
        for (int to = 0; to < ranks; to++)
            fprintf(out, "%s%llu", to ? ", " : "", (unsigned long long)values[(2 * from + first) * (size_t)ranks + to]);
        fputc(']', out);
    }
    fputs("\n  ]", out);
}

/* The content of the report, summed over the ranks. */
typedef struct {
    const tutti_settings *settings;
    const tutti_plan *plan;
    int ranks, were_spawned;
    const uint64_t *covered, *passed;
    const uint64_t *counts; /* per rank, messages and bytes sent to each rank; or NULL */
    const char *off;        /* why the library is switched off in this job, or NULL */
} findings;

static void write_report(FILE *out, const findings *all)
{
    fputs("{\n  \"library\": \"libtutti_mpi\",\n  \"mpi\": ", out);
    write_mpi(out);
    fprintf(out, ",\n  \"ranks\": %d,\n  \"plan\": ", all->ranks);
    write_string(out, all->settings->plan);
    fputs(",\n  \"emulation\": ", out);
    tutti_distance_describe(&all->settings->distance, out);
    if (all->off) {
        fputs(",\n  \"off\": ", out);
        write_string(out, all->off);
    }
    fputs(",\n  ", out);
    write_covered(out, all->plan, all->covered);
    fputs(",\n  ", out);
    write_passed(out, all->passed);
    if (all->counts) {
        write_matrix(out, "messages", all->counts, all->ranks, 0);
        write_matrix(out, "bytes", all->counts, all->ranks, 1);
    }
    fputs("\n}\n", out);
}

/* Without TUTTI_MPI_REPORT, one line on stderr mentions forwarded calls. */
static void write_notice(const findings *all)
{
    uint64_t covered = 0, passed = 0;
    if (all->off)
        fprintf(stderr, "tutti: %s\n", all->off);
    for (uint32_t i = 0; i < all->plan->schedule_count; i++)
        covered += all->covered[i];
    for (int i = 0; i < TUTTI_FUNCTIONS * TUTTI_REASONS; i++)
        passed += all->passed[i];
    if (passed)
        fprintf(stderr,
                "tutti: %llu of %llu collective calls went to the MPI library; TUTTI_MPI_REPORT=- lists them with reasons\n",
                (unsigned long long)passed, (unsigned long long)(covered + passed));
}

static void write_file(const char *where, const findings *all)
{
    char own[32] = "", *path = NULL;
    if (all->were_spawned)
        snprintf(own, sizeof own, ".%ld", (long)getpid());
    FILE *out = asprintf(&path, "%s%s.json", where, own) < 0 ? NULL : fopen(path, "w");
    if (!out) {
        fprintf(stderr, "tutti: %s: cannot be written (%s): the report of TUTTI_MPI_REPORT is lost\n", where, strerror(errno));
    } else {
        write_report(out, all);
        if (fclose(out))
            fprintf(stderr, "tutti: %s: written incompletely\n", path);
    }
    free(path);
}

static void publish(const findings *all)
{
    const char *where = all->settings->report;
    if (!where) {
        write_notice(all);
    } else if (strcmp(where, "-") == 0) {
        write_report(stderr, all);
    } else if (*where) {
        write_file(where, all);
    }
}

/* Whether all ranks succeeded: a rank must not wait for one that failed. */
static int all_succeeded(int success)
{
    PMPI_Allreduce(MPI_IN_PLACE, &success, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return success;
}

/* Gathers messages and bytes between all ranks at rank 0; NULL elsewhere. */
static uint64_t *gather_counts(int rank, int ranks)
{
    uint64_t *own = calloc(2 * (size_t)ranks, sizeof *own), *all = NULL;
    if (rank == 0)
        all = calloc(2 * (size_t)ranks * (size_t)ranks, sizeof *all);
    if (all_succeeded(own && (rank != 0 || all)) && own) {
        tutti_mpi_counts(own, own + ranks, 0);
        PMPI_Gather(own, 2 * ranks, MPI_UINT64_T, all, 2 * ranks, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    }
    free(own);
    return all;
}

/* Sums counters over the ranks at rank 0: each call is counted on exactly one rank. */
static uint64_t *summed(_Atomic uint64_t *counters, int count)
{
    uint64_t *sums = calloc((size_t)count + 1, sizeof *sums), *own = calloc((size_t)count + 1, sizeof *own);
    if (all_succeeded(sums && own) && sums && own) {
        for (int i = 0; i < count; i++)
            own[i] = atomic_load(&counters[i]);
        PMPI_Reduce(own, sums, count, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    free(own);
    return sums;
}

void tutti_report(const tutti_settings *settings, const tutti_plan *plan, _Atomic uint64_t *covered,
                  _Atomic uint64_t *passed, int were_spawned)
{
    int rank, ranks;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t *covers = summed(covered, (int)plan->schedule_count);
    uint64_t *passes = summed(passed, TUTTI_FUNCTIONS * TUTTI_REASONS);
    uint64_t *counts = settings->counts ? gather_counts(rank, ranks) : NULL;
    if (rank == 0 && covers && passes)
        publish(&(findings){settings, plan, ranks, were_spawned, covers, passes, counts, NULL});
    free(covers);
    free(passes);
    free(counts);
}

void tutti_report_off(const tutti_settings *settings, const tutti_plan *plan, const char *why, int were_spawned)
{
    int ranks;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t *covers = calloc((size_t)plan->schedule_count + 1, sizeof *covers);
    uint64_t *passes = calloc(TUTTI_FUNCTIONS * TUTTI_REASONS, sizeof *passes);
    if (covers && passes)
        publish(&(findings){settings, plan, ranks, were_spawned, covers, passes, NULL, why});
    free(covers);
    free(passes);
}
