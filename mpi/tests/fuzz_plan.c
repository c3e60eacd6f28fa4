/* Reads plan files with random errors, most with valid checksums, and compiles the accepted ones.
 *
 *     fuzz_plan PLAN MUTATIONS SEED
 *
 * Compiled with the library's plan.c, code.c, lower.c, fold.c and pending.c and with sanitizers, which stop it when it reads a
 * byte outside the file. Compiled code must stay within its chunks and areas. Prints JSON, including the message about the
 * unmodified file and the number of areas that its ranks have for copies of sent chunks. MPI is never initialised. */
#include "plan.h"
#include "variant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_WORK ((uint64_t)1 << 22) /* chunks or slots: if a schedule claims more, only one rank is compiled */

static uint64_t state;

static uint64_t drawn(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t value = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* The checksum of bytes that follow others with checksum `before`; 0 for none. */
static uint32_t checksum(uint32_t before, const unsigned char *bytes, size_t length) {
    uint32_t crc = ~before;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* One error: a byte or bit changed, a number of 4 or 8 bytes set to an edge case, or a range copied onto another. */
static void mutate(unsigned char *file, size_t length) {
    static const uint64_t edge_cases[] = {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0xfffffffe,
                                          UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63, (uint64_t)1 << 32};
    size_t at = 16 + drawn() % (length - 16);
    int bytes = drawn() & 1 ? 4 : 8;
    switch (drawn() % 5) {
    case 0: file[at] = (unsigned char)drawn(); break;
    case 1: file[at] ^= (unsigned char)(1u << drawn() % 8); break;
    case 2: at &= ~(size_t)3; /* fall through */
    case 3:
        if (at + (size_t)bytes <= length)
            put(file + at, drawn() & 1 ? edge_cases[drawn() % (sizeof edge_cases / sizeof *edge_cases)] : drawn() % (2 * length), bytes);
        break;
    default: {
        size_t from = 16 + drawn() % (length - 16), most = length - (from > at ? from : at);
        memmove(file + at, file + from, drawn() % (most + 1));
    }
    }
}

static uint64_t number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* The checksum of runs, and of the code that lies in `parts`; that of the runs if they are invalid. */
static uint32_t checksum_of_code(const unsigned char *runs, size_t length, const unsigned char *parts, uint64_t size) {
    uint32_t first = checksum(0, runs, length), crc = first;
    uint64_t total = 0;
    tutti_numbers from = {runs, runs + length, 0};
    while (from.at < from.end) {
        uint64_t at = tutti_next_number(&from), bytes = tutti_next_number(&from);
        total += bytes;
        if (from.bad || at > size || bytes > size - at || total > MOST_WORK) return first;
        crc = checksum(crc, parts + at, bytes);
    }
    return crc;
}

/* Corrects the checksums of all code that lies within the file, and that of the index. */
static void put_checksums(unsigned char *file, size_t length) {
    uint64_t index = number(file + 24, 8), parts_end = number(file + 32, 8), entry = 64 + 32 * number(file + 40, 4);
    if (index < 64 || index > length || parts_end < index || parts_end > length) return;
    for (uint64_t left = number(file + 44, 4); left > 0 && entry + 48 <= index; left--, entry += 48) {
        uint64_t ranks = number(file + entry + 4, 4), table = number(file + entry + 40, 8);
        if (table > index || 12 * ranks + 8 > index - table) continue;
        for (uint64_t rank = 0; rank < ranks; rank++) {
            uint64_t start = number(file + table + 8 * rank, 8), end = number(file + table + 8 * rank + 8, 8);
            if (start <= end && end <= length)
                put(file + table + 8 * (ranks + 1) + 4 * rank,
                    checksum_of_code(file + start, end - start, file + index, parts_end - index), 4);
        }
    }
    put(file + 12, checksum(0, file + 16, index - 16), 4);
}

static size_t spoil(unsigned char *file, size_t length) {
    if (drawn() % 8 == 0) length -= drawn() % length; /* truncated */
    if (length < 64) return length;
    for (uint64_t mistakes = 1 + drawn() % 2; mistakes > 0; mistakes--) mutate(file, length);
    if (drawn() % 8 == 0) file[drawn() % 16] ^= (unsigned char)(1u << drawn() % 8);
    if (drawn() % 16 != 0) { /* otherwise these two checks would hide all later ones */
        put(file + 16, length, 8);
        put_checksums(file, length);
    }
    return length;
}

static void require(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "fuzz_plan: %s\n", what);
    abort();
}

/* Checks that every pending request has a distinct index, and completes after it started. */
static void examine_pending(const tutti_variant *variant) {
    unsigned char *taken = calloc((size_t)variant->pending + 1, 1);
    uint32_t found = 0;
    require(variant->due[0] == 0 && variant->due[variant->stages] == variant->pending, "a send that never completes");
    for (uint32_t stage = 0; stage < variant->stages; stage++)
        for (uint32_t i = variant->stage[stage].send; i < variant->stage[stage + 1].send; i++) {
            uint32_t place = variant->place[i];
            if (place == TUTTI_NOT_PENDING) continue;
            require(place < variant->pending && !taken[place], "two requests with one index");
            require(place >= variant->due[stage + 1], "a send that completes before it starts");
            taken[place] = 1;
            found++;
        }
    require(found == variant->pending, "an index without a request");
    free(taken);
}

static void examine(const tutti_variant *variant, const tutti_schedule_info *info) {
    uint32_t transfers[2] = {variant->stage[variant->stages].receive, variant->stage[variant->stages].send};
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < transfers[side]; i++) {
            const tutti_transfer *one = (side ? variant->sends : variant->receives) + i;
            require(one->peer < info->ranks && one->area < variant->areas, "a message with an invalid peer or area");
            require(one->first < info->chunks && one->count <= info->chunks - one->first, "a message with invalid chunks");
        }
    for (uint32_t i = 0; i < variant->stage[variant->stages].local_op; i++) {
        const tutti_local_op *op = &variant->local_ops[i];
        uint32_t last = op->kind == TUTTI_MOVE && op->at > op->first ? op->at : op->first;
        require(op->from < variant->areas && op->to < variant->areas, "a local op with an invalid area");
        require(last < info->chunks && op->count <= info->chunks - last, "a local op with invalid chunks");
    }
    if (variant->place) examine_pending(variant);
}

static uint64_t compiled, refused_late, copies;

static void compile(const tutti_plan *plan, char *message) {
    for (uint32_t index = 0; index < tutti_plan_schedules(plan); index++) {
        tutti_schedule_info info = tutti_plan_schedule(plan, index);
        uint32_t ranks = info.chunks > MOST_WORK || info.slots > MOST_WORK ? 1 : info.ranks;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const tutti_call_form forms[] = {{0, 0, 0}, {0, 1, 0}, {0, 0, 1}, {(int)(rank % info.ranks), 1, 1}};
            for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
                tutti_variant *variant = NULL;
                int error = tutti_variant_lower(plan, index, rank, forms[form], &variant, message);
                require(!error || message[0] != 0, "refused without a message");
                refused_late += error != 0;
                compiled += error == 0;
                if (!error) copies += variant->areas - TUTTI_SCRATCH - TUTTI_TEMPORARIES - info.slots;
                if (!error) examine(variant, &info);
                if (!error) tutti_variant_free(variant);
            }
        }
    }
}

int main(int argc, char **argv) {
    FILE *source = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (source == NULL) return 2;
    unsigned char *original = malloc(1 << 22), *file = malloc(1 << 22);
    size_t length = fread(original, 1, 1 << 22, source);
    fclose(source);
    state = strtoull(argv[3], NULL, 10);
    uint64_t accepted = 0, refused = 0;
    tutti_plan *unmodified = NULL;
    char text[TUTTI_MESSAGE_SIZE] = "";
    const char *first = tutti_plan_read(argv[1], &unmodified, text) ? "refused" : "accepted";
    if (unmodified) compile(unmodified, text);
    uint64_t copied = copies;
    tutti_plan_free(unmodified);
    for (int64_t left = atoll(argv[2]); left > 0; left--) {
        char path[64], message[TUTTI_MESSAGE_SIZE] = "";
        memcpy(file, original, length);
        size_t spoiled = spoil(file, length);
        int handle = memfd_create("plan", 0);
        require(handle >= 0 && write(handle, file, spoiled) == (ssize_t)spoiled, "no file in memory");
        snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
        tutti_plan *plan = NULL;
        int error = tutti_plan_read(path, &plan, message);
        require(!error || (plan == NULL && message[0] != 0), "refused without a message");
        refused += error != 0;
        accepted += error == 0;
        if (!error) compile(plan, message);
        tutti_plan_free(plan);
        close(handle);
    }
    free(original);
    free(file);
    printf("{\"original\": \"%s\", \"message\": \"%s\", \"accepted\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"compiled\": %" PRIu64 ", \"refused_late\": %" PRIu64 ", \"copies\": %" PRIu64 "}\n",
           first, text, accepted, refused, compiled, refused_late, copied);
    return 0;
}
