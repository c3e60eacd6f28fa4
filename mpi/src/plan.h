/* An open plan file: its index is in memory, the code of a rank is read on demand. */
#ifndef TUTTI_PLAN_H
#define TUTTI_PLAN_H

#include "tutti_mpi.h"

#define TUTTI_LONGEST_CODE (1u << 30) /* bytes of a rank: keeps all counts below 2^32 */

typedef struct {
    uint32_t collective, ranks, schedule;
    uint64_t smallest, largest; /* bytes, inclusive */
} tutti_rule;

struct tutti_plan {
    char *path;
    int file;             /* descriptor, held open because the file may be replaced */
    unsigned char *index; /* the file without the code */
    uint64_t length, index_length, parts_end; /* parts of code follow the index, runs of them follow the parts */
    uint32_t crc_table[4][256]; /* of a byte before 0 to 3 zeros */
    uint32_t crc; /* of the index, which contains the checksums of all code */
    uint32_t rule_count, schedule_count;
    tutti_rule *rules;
    tutti_schedule_info *schedules;
    uint64_t *tables; /* offset of each schedule's table of runs */
    char *text;       /* the provenance, then the names, each null-terminated */
};

/* As tutti_plan_read, but checks only the code of the ranks r with r % parts == part of every schedule: processes that read
 * a plan together check one part each. Code is checked again when it is read for a rank. */
int tutti_plan_open(const char *path, uint32_t part, uint32_t parts, tutti_plan **plan, char *message);

/* Reads the code of a rank of a schedule; both must exist. Returns 0, TUTTI_BAD_PLAN or TUTTI_NO_MEMORY. The caller frees. */
int tutti_plan_code(const tutti_plan *plan, uint32_t schedule, uint32_t rank, unsigned char **code, uint64_t *length,
                    char *message);

/* Formats into `message`, which may be NULL; returns `error`. */
int tutti_fail(char *message, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether there is a rule for a collective. */
int tutti_plan_has(const tutti_plan *plan, uint32_t collective);

const char *tutti_collective_name(uint32_t collective);

/* Whether the payload is divided into one shard per rank. */
int tutti_has_shards(uint32_t collective);

/* Whether the collective has a root. Schedules have root 0; for another root the ranks are rotated. */
int tutti_is_rooted(uint32_t collective);

/* Whether values of different ranks are combined. Then an element has the call's datatype, else it is a byte. */
int tutti_reduces(uint32_t collective);

#endif
