/* An open plan file: its index in memory, the code of ranks read where it is needed. */
#ifndef TUTTI_PLAN_H
#define TUTTI_PLAN_H

#include "tutti_mpi.h"

typedef struct {
    uint32_t collective, ranks, schedule;
    uint64_t smallest, largest; /* bytes, both included */
} tutti_rule;

struct tutti_plan {
    char *path;
    int file;             /* its descriptor: the file may be replaced meanwhile */
    unsigned char *index; /* all but the code */
    uint64_t length, index_length;
    uint32_t crc; /* of the index, which has the checksums of all code */
    uint32_t rule_count, schedule_count;
    tutti_rule *rules;
    tutti_schedule_info *schedules;
    uint64_t *tables; /* where each schedule's table of codes begins */
    char *text;       /* the provenance, then the names, each with its end */
};

/* As tutti_plan_read, but of every schedule only the code of the ranks r with r % parts == part is checked: processes that read
 * a plan together check a part each. Code is checked again when a rank's is read. */
int tutti_plan_open(const char *path, uint32_t part, uint32_t parts, tutti_plan **plan, char *message);

/* Reads the code of a rank of a schedule: both exist. Returns 0, TUTTI_BAD_PLAN or TUTTI_NO_MEMORY; the caller frees it. */
int tutti_plan_code(const tutti_plan *plan, uint32_t schedule, uint32_t rank, unsigned char **code, uint64_t *length,
                    char *message);

/* snprintf into a message that may be NULL; returns `error`. */
int tutti_say(char *message, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether there is any rule for a collective. */
int tutti_plan_has(const tutti_plan *plan, uint32_t collective);

const char *tutti_collective_name(uint32_t collective);

/* Whether the payload is divided into one shard per rank. */
int tutti_has_shards(uint32_t collective);

/* Whether it has a root: schedules are for root 0, of another root ranks are turned. */
int tutti_is_rooted(uint32_t collective);

/* Whether values of different ranks are combined: then an element is one of the call's datatype, else a byte. */
int tutti_reduces(uint32_t collective);

#endif
