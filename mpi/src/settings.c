/* Reads the environment variables. */
#include "settings.h"

#include "distance.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* A copy of a variable's value, NULL where it is unset. */
static int copy(const char *name, char **value, char *message)
{
    const char *text = getenv(name);
    *value = text ? strdup(text) : NULL;
    return text && !*value ? tutti_fail(message, TUTTI_NO_MEMORY, "%s: out of memory for its value", name) : 0;
}

/* Reads a variable with value `yes`, `no`, or empty. */
static int read_switch(const char *name, const char *yes, const char *no, int *value, char *message)
{
    const char *text = getenv(name);
    *value = text && strcmp(text, yes) == 0;
    if (*value || !text || !*text || (no && strcmp(text, no) == 0))
        return 0;
    return tutti_fail(message, TUTTI_BAD_PLAN, "%s: `%s`: expected `%s`%s%s%s, or unset", name, text, yes,
                      no ? " or `" : "", no ? no : "", no ? "`" : "");
}

int tutti_settings_read(tutti_settings *settings, char *message)
{
    *settings = (tutti_settings){.plan = NULL};
    const char *plan = getenv("TUTTI_MPI_PLAN");
    if (!plan || !*plan)
        return 0;
    int error = copy("TUTTI_MPI_PLAN", &settings->plan, message);
    if (!error)
        error = copy("TUTTI_MPI_REPORT", &settings->report, message);
    if (!error)
        error = read_switch("TUTTI_MPI_COUNTS", "1", "0", &settings->counts, message);
    if (!error)
        error = read_switch("TUTTI_MPI_RANKS", "any", NULL, &settings->any_size, message);
    if (!error)
        error = tutti_distance_read(&settings->distance, message);
    return error;
}

void tutti_settings_free(tutti_settings *settings)
{
    free(settings->plan);
    free(settings->report);
    *settings = (tutti_settings){.plan = NULL};
}
