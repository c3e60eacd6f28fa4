/* Reads and validates plan files: no input causes reads out of bounds, and every invalid file is reported. A rank reads the
 * index and its part of the code. */
#include "plan.h"

#include "code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 64, RULE = 32, SCHEDULE = 48, LONGEST_NAME = 1 << 16 };
enum { MOST_CHUNKS = 1 << 28, MOST_SLOTS = 1 << 20 }; /* keeps sums below 2^32 */

static const uint32_t known_flags = TUTTI_RANK_ORDER | TUTTI_MOVES_CHUNKS | TUTTI_WRITES_DATA | TUTTI_SAME_ON_ALL |
                                    TUTTI_PENDING_SENDS | TUTTI_SAME_ORDER;

int tutti_fail(char *message, int error, const char *format, ...)
{
    if (message) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, TUTTI_MESSAGE_SIZE, format, arguments);
        va_end(arguments);
    }
    return error;
}

const char *tutti_collective_name(uint32_t collective)
{
    static const char *const names[TUTTI_COLLECTIVES] = {"all_reduce", "reduce_scatter", "all_gather",
                                                         "broadcast",  "reduce",         "gather",
                                                         "scatter",    "all_to_all",     "barrier"};
    return collective < TUTTI_COLLECTIVES ? names[collective] : "unknown";
}

int tutti_has_shards(uint32_t collective)
{
    return collective == TUTTI_REDUCE_SCATTER || collective == TUTTI_ALL_GATHER || collective == TUTTI_GATHER ||
           collective == TUTTI_SCATTER || collective == TUTTI_ALL_TO_ALL;
}

int tutti_is_rooted(uint32_t collective)
{
    return collective == TUTTI_BROADCAST || collective == TUTTI_REDUCE || collective == TUTTI_GATHER ||
           collective == TUTTI_SCATTER;
}

int tutti_reduces(uint32_t collective)
{
    return collective == TUTTI_ALL_REDUCE || collective == TUTTI_REDUCE_SCATTER || collective == TUTTI_REDUCE;
}

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t read_u64(const unsigned char *at)
{
    return (uint64_t)read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

/* Whether `count` entries of `each` bytes at `offset` lie within `length`. */
static int within(uint64_t offset, uint64_t count, uint64_t each, uint64_t length)
{
    return offset <= length && (each == 0 || count <= (length - offset) / each);
}

static void fill_crc_table(tutti_plan *plan)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value & 1u) ? 0xEDB88320u ^ (value >> 1) : value >> 1;
        plan->crc_table[0][i] = value;
    }
    for (int zeros = 1; zeros < 4; zeros++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = plan->crc_table[zeros - 1][i];
            plan->crc_table[zeros][i] = plan->crc_table[0][value & 0xFFu] ^ (value >> 8);
        }
}

/* The CRC-32 of zlib, PNG and IEEE 802.3, of bytes that follow others with checksum `before`; 0 for none. */
static uint32_t crc32(const tutti_plan *plan, uint32_t before, const unsigned char *bytes, uint64_t length)
{
    const uint32_t(*table)[256] = plan->crc_table;
    uint32_t crc = before ^ 0xFFFFFFFFu;
    for (; length >= 4; length -= 4, bytes += 4) {
        crc ^= read_u32(bytes);
        crc = table[3][crc & 0xFFu] ^ table[2][crc >> 8 & 0xFFu] ^ table[1][crc >> 16 & 0xFFu] ^ table[0][crc >> 24];
    }
    for (; length > 0; length--, bytes++)
        crc = table[0][(crc ^ *bytes) & 0xFFu] ^ (crc >> 8);
    return crc ^ 0xFFFFFFFFu;
}

/* Reads bytes of the file; fewer are an error. */
static int read_at(const tutti_plan *plan, uint64_t offset, uint64_t length, unsigned char *bytes)
{
    while (length > 0) {
        ssize_t got = pread(plan->file, bytes, length, (off_t)offset);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return TUTTI_BAD_PLAN;
        if (got > 0) {
            bytes += got;
            offset += (uint64_t)got;
            length -= (uint64_t)got;
        }
    }
    return 0;
}

static int open_file(const char *path, tutti_plan *plan, char *message)
{
    struct stat found;
    plan->path = strdup(path);
    plan->file = open(path, O_RDONLY | O_CLOEXEC);
    if (plan->file < 0)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: cannot be opened: %s; `tutti mpi plan` writes plan files", path,
                          strerror(errno));
    if (fstat(plan->file, &found) || !S_ISREG(found.st_mode))
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: cannot be read: expected a regular file", path);
    plan->length = (uint64_t)found.st_size;
    return plan->path ? 0 : tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for the file name", path);
}

/* Validates the header; its checksum has not been checked yet. */
static int check_header(const char *path, tutti_plan *plan, char *message)
{
    unsigned char header[HEADER] = {0};
    uint64_t length = plan->length < HEADER ? plan->length : HEADER;
    if (read_at(plan, 0, length, header))
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: cannot be read to its end", path);
    if (length < 8 || memcmp(header, "TUTTIPLN", 8) != 0)
        return tutti_fail(message, TUTTI_BAD_PLAN,
                          "%s: not a plan file: expected it to start with TUTTIPLN; `tutti mpi plan` writes plan files", path);
    uint32_t version = length < 12 ? TUTTI_PLAN_VERSION : read_u32(header + 8);
    if (version != TUTTI_PLAN_VERSION)
        return tutti_fail(message, TUTTI_BAD_PLAN,
                          "%s: version %u: expected version %u; write the plan again with the tutti that built this library",
                          path, version, TUTTI_PLAN_VERSION);
    if (length < HEADER || read_u64(header + 16) != plan->length)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: truncated or too long: %llu bytes: expected %llu as in its header", path,
                          (unsigned long long)plan->length,
                          length < HEADER ? 0ull : (unsigned long long)read_u64(header + 16));
    plan->crc = read_u32(header + 12);
    plan->index_length = read_u64(header + 24);
    plan->parts_end = read_u64(header + 32);
    if (plan->index_length < HEADER || plan->index_length > plan->parts_end || plan->parts_end > plan->length)
        return tutti_fail(message, TUTTI_BAD_PLAN,
                          "%s: corrupted: its index has %llu of %llu bytes, its parts end at %llu; rewrite the plan", path,
                          (unsigned long long)plan->index_length, (unsigned long long)plan->length,
                          (unsigned long long)plan->parts_end);
    return 0;
}

static int read_index(const char *path, tutti_plan *plan, char *message)
{
    plan->index = malloc(plan->index_length);
    if (!plan->index)
        return tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for its index", path);
    if (read_at(plan, 0, plan->index_length, plan->index))
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: cannot be read to its end", path);
    uint32_t found = crc32(plan, 0, plan->index + 16, plan->index_length - 16);
    if (found != plan->crc)
        return tutti_fail(message, TUTTI_BAD_PLAN,
                          "%s: corrupted: checksum %08x: expected %08x, as in its header; rewrite the plan", path, found,
                          plan->crc);
    return 0;
}

/* Runs follow the parts of code without gaps, ordered by schedule and rank, so that a checksum covers every byte. `*next` is
 * the expected start of the schedule's runs, and is advanced to that of the next schedule. */
static int check_table(const char *path, const tutti_plan *plan, uint32_t index, uint64_t *next, char *message)
{
    uint64_t table = plan->tables[index], ranks = plan->schedules[index].ranks;
    if (!within(table, 3 * ranks + 2, 4, plan->index_length))
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: schedule %u: its table lies outside the file", path, index);
    for (uint64_t rank = 0; rank <= ranks; rank++) {
        uint64_t offset = read_u64(plan->index + table + 8 * rank);
        if ((rank == 0 && offset != *next) || offset < *next || offset > plan->length)
            return tutti_fail(message, TUTTI_BAD_PLAN, "%s: schedule %u: the code of rank %llu lies outside the file", path,
                              index, (unsigned long long)rank);
        *next = offset;
    }
    return 0;
}

/* Reads one schedule's entry, except its name. */
static int read_schedule(const char *path, tutti_plan *plan, uint32_t index, const unsigned char *entry, char *message)
{
    tutti_schedule_info *info = &plan->schedules[index];
    *info = (tutti_schedule_info){.collective = read_u32(entry),
                                  .ranks = read_u32(entry + 4),
                                  .chunks = read_u32(entry + 8),
                                  .slots = read_u32(entry + 12),
                                  .result = read_u32(entry + 16),
                                  .flags = read_u32(entry + 20)};
    plan->tables[index] = read_u64(entry + 40);
    if (info->chunks > MOST_CHUNKS || info->slots > MOST_SLOTS)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: schedule %u: %u chunks and %u slots: expected at most %u and %u", path,
                          index, info->chunks, info->slots, MOST_CHUNKS, MOST_SLOTS);
    int invalid = info->collective >= TUTTI_COLLECTIVES || info->ranks == 0 || info->chunks == 0 ||
              info->result >= info->slots || (info->flags & ~known_flags) ||
              (tutti_has_shards(info->collective) && info->chunks % info->ranks != 0);
    if (invalid)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: schedule %u: invalid collective, ranks, chunks or flags", path, index);
    return 0;
}

static int read_rule(const char *path, tutti_plan *plan, uint32_t index, const unsigned char *entry, char *message)
{
    tutti_rule *rule = &plan->rules[index];
    *rule = (tutti_rule){.collective = read_u32(entry),
                         .ranks = read_u32(entry + 4),
                         .smallest = read_u64(entry + 8),
                         .largest = read_u64(entry + 16),
                         .schedule = read_u32(entry + 24)};
    if (rule->schedule >= plan->schedule_count || plan->schedules[rule->schedule].collective != rule->collective ||
        plan->schedules[rule->schedule].ranks != rule->ranks)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: rule %u: the plan has no schedule %u of %s on %u ranks", path, index,
                          rule->schedule, tutti_collective_name(rule->collective), rule->ranks);
    return 0;
}

/* Copies the provenance and the names, each terminated by a null byte. */
static int read_texts(const char *path, tutti_plan *plan, const unsigned char *schedules, char *message)
{
    const unsigned char *header = plan->index;
    uint64_t at = read_u64(header + 48), length = read_u64(header + 56), total = 1;
    int inside = within(at, length, 1, plan->index_length);
    for (uint32_t i = 0; inside && i < plan->schedule_count; i++) {
        const unsigned char *entry = schedules + (uint64_t)SCHEDULE * i;
        inside = read_u64(entry + 32) <= LONGEST_NAME &&
                 within(read_u64(entry + 24), read_u64(entry + 32), 1, plan->index_length);
        total += inside ? read_u64(entry + 32) + 1 : 0;
    }
    if (!inside)
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: a name or the provenance lies outside the file", path);
    char *text = plan->text = calloc(1, total + length);
    if (!text)
        return tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for its names", path);
    memcpy(text, plan->index + at, length);
    text += length + 1;
    for (uint32_t i = 0; i < plan->schedule_count; i++) {
        const unsigned char *entry = schedules + (uint64_t)SCHEDULE * i;
        length = read_u64(entry + 32);
        memcpy(text, plan->index + read_u64(entry + 24), length);
        plan->schedules[i].name = text;
        text += length + 1;
    }
    return 0;
}

static int allocate(tutti_plan *plan)
{
    plan->rules = calloc((size_t)plan->rule_count + 1, sizeof *plan->rules);
    plan->schedules = calloc((size_t)plan->schedule_count + 1, sizeof *plan->schedules);
    plan->tables = calloc((size_t)plan->schedule_count + 1, sizeof *plan->tables);
    return plan->rules && plan->schedules && plan->tables;
}

static int read_entries(const char *path, tutti_plan *plan, char *message)
{
    plan->rule_count = read_u32(plan->index + 40);
    plan->schedule_count = read_u32(plan->index + 44);
    uint64_t rules = plan->rule_count, schedules = plan->schedule_count, next = plan->parts_end;
    if (!within(HEADER, 1, rules * RULE + schedules * SCHEDULE, plan->index_length))
        return tutti_fail(message, TUTTI_BAD_PLAN, "%s: %u rules and %u schedules exceed its length", path, plan->rule_count,
                          plan->schedule_count);
    if (!allocate(plan))
        return tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for its rules", path);
    const unsigned char *entries = plan->index + HEADER + rules * RULE;
    int error = 0;
    for (uint32_t i = 0; !error && i < plan->schedule_count; i++)
        error = read_schedule(path, plan, i, entries + (uint64_t)SCHEDULE * i, message);
    for (uint32_t i = 0; !error && i < plan->schedule_count; i++)
        error = check_table(path, plan, i, &next, message);
    if (!error && next != plan->length)
        error = tutti_fail(message, TUTTI_BAD_PLAN, "%s: %llu bytes belong to no schedule", path,
                           (unsigned long long)(plan->length - next));
    for (uint32_t i = 0; !error && i < plan->rule_count; i++)
        error = read_rule(path, plan, i, plan->index + HEADER + (uint64_t)RULE * i, message);
    return error ? error : read_texts(path, plan, entries, message);
}

static int check_code(const tutti_plan *plan, uint32_t schedule, uint32_t rank, char *message)
{
    unsigned char *code;
    uint64_t length;
    int error = tutti_plan_code(plan, schedule, rank, &code, &length, message);
    if (error)
        return error;
    const tutti_schedule_info *info = &plan->schedules[schedule];
    int good = tutti_code_is_good(code, length, info, rank);
    free(code);
    return good ? 0
                : tutti_fail(message, TUTTI_BAD_PLAN, "%s: schedule %u, %s: invalid code of rank %u", plan->path,
                             schedule, info->name, rank);
}

/* A communicator may give this process any rank, and a failure in the middle of a run would be too late: the processes of a
 * job share the work of checking the code of all ranks. */
static int check_codes(const tutti_plan *plan, uint32_t part, uint32_t parts, char *message)
{
    int error = 0;
    for (uint32_t schedule = 0; !error && schedule < plan->schedule_count; schedule++)
        for (uint64_t rank = part; !error && rank < plan->schedules[schedule].ranks; rank += parts)
            error = check_code(plan, schedule, (uint32_t)rank, message);
    return error;
}

int tutti_plan_open(const char *path, uint32_t part, uint32_t parts, tutti_plan **result, char *message)
{
    *result = NULL;
    tutti_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for a plan", path);
    fill_crc_table(plan);
    int error = open_file(path, plan, message);
    if (!error)
        error = check_header(path, plan, message);
    if (!error)
        error = read_index(path, plan, message);
    if (!error)
        error = read_entries(path, plan, message);
    if (!error)
        error = check_codes(plan, part, parts, message);
    if (error) {
        tutti_plan_free(plan);
        return error;
    }
    *result = plan;
    return 0;
}

int tutti_plan_read(const char *path, tutti_plan **plan, char *message)
{
    return tutti_plan_open(path, 0, 1, plan, message);
}

void tutti_plan_free(tutti_plan *plan)
{
    if (!plan)
        return;
    if (plan->file >= 0)
        close(plan->file);
    free(plan->path);
    free(plan->index);
    free(plan->rules);
    free(plan->schedules);
    free(plan->tables);
    free(plan->text);
    free(plan);
}

uint32_t tutti_plan_schedules(const tutti_plan *plan)
{
    return plan->schedule_count;
}

tutti_schedule_info tutti_plan_schedule(const tutti_plan *plan, uint32_t index)
{
    return plan->schedules[index];
}

const char *tutti_plan_provenance(const tutti_plan *plan)
{
    return plan->text;
}

int tutti_plan_rule(const tutti_plan *plan, uint32_t collective, uint32_t ranks, uint64_t size, int from, uint32_t *schedule)
{
    for (uint32_t i = from < 0 ? 0 : (uint32_t)from; i < plan->rule_count; i++) {
        const tutti_rule *rule = &plan->rules[i];
        if (rule->collective == collective && rule->ranks == ranks && rule->smallest <= size && size <= rule->largest) {
            *schedule = rule->schedule;
            return (int)i;
        }
    }
    return -1;
}

int tutti_plan_has(const tutti_plan *plan, uint32_t collective)
{
    for (uint32_t i = 0; i < plan->rule_count; i++)
        if (plan->rules[i].collective == collective)
            return 1;
    return 0;
}

/* The runs of a rank, as numbers: the offset and size of each, from the start of the parts. */
typedef struct {
    unsigned char *bytes;
    uint64_t length, total; /* `total`: the size of the code */
} run_list;

/* Reads and validates the runs of a rank. Returns 0, TUTTI_BAD_PLAN or TUTTI_NO_MEMORY; `bytes` is to be freed in any case. */
static int read_runs(const tutti_plan *plan, const unsigned char *entry, run_list *runs)
{
    uint64_t start = read_u64(entry), parts = plan->parts_end - plan->index_length;
    *runs = (run_list){.length = read_u64(entry + 8) - start};
    runs->bytes = malloc(runs->length + 1);
    if (!runs->bytes)
        return TUTTI_NO_MEMORY;
    if (read_at(plan, start, runs->length, runs->bytes))
        return TUTTI_BAD_PLAN;
    tutti_numbers from = {runs->bytes, runs->bytes + runs->length, 0};
    while (from.at < from.end && !from.bad) {
        uint64_t at = tutti_next_number(&from), size = tutti_next_number(&from);
        runs->total += size;
        from.bad |= !within(at, size, 1, parts) || runs->total > TUTTI_LONGEST_CODE;
    }
    return from.bad ? TUTTI_BAD_PLAN : 0;
}

static int read_parts(const tutti_plan *plan, const run_list *runs, unsigned char *code)
{
    int error = 0;
    tutti_numbers from = {runs->bytes, runs->bytes + runs->length, 0};
    while (from.at < from.end && !error) {
        uint64_t at = tutti_next_number(&from), size = tutti_next_number(&from);
        error = read_at(plan, plan->index_length + at, size, code);
        code += size;
    }
    return error;
}

int tutti_plan_code(const tutti_plan *plan, uint32_t schedule, uint32_t rank, unsigned char **code, uint64_t *length,
                    char *message)
{
    uint64_t ranks = plan->schedules[schedule].ranks;
    const unsigned char *table = plan->index + plan->tables[schedule];
    uint32_t checksum = read_u32(table + 8 * (ranks + 1) + (uint64_t)4 * rank);
    run_list runs;
    *code = NULL;
    int error = read_runs(plan, table + (uint64_t)8 * rank, &runs);
    *length = runs.total;
    if (!error) {
        *code = malloc(*length + 1);
        error = *code ? read_parts(plan, &runs, *code) : TUTTI_NO_MEMORY;
    }
    if (!error && crc32(plan, crc32(plan, 0, runs.bytes, runs.length), *code, *length) != checksum)
        error = TUTTI_BAD_PLAN;
    free(runs.bytes);
    if (!error)
        return 0;
    free(*code);
    *code = NULL;
    if (error == TUTTI_NO_MEMORY)
        return tutti_fail(message, error, "%s: out of memory for the code of rank %u", plan->path, rank);
    return tutti_fail(message, error, "%s: corrupted: wrong checksum of schedule %u, rank %u; rewrite the plan", plan->path,
                      schedule, rank);
}
