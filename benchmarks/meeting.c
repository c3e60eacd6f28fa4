/* Times how long two threads take to meet at a spinning barrier: prints the median over blocks, in ns. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 401, MEETINGS = 1000 };

static atomic_int arrived, phase;

static void meet(void) {
    int now = atomic_load(&phase);
    if (atomic_fetch_add(&arrived, 1) == 1) {
        atomic_store(&arrived, 0);
        atomic_store(&phase, now + 1);
    } else {
        while (atomic_load(&phase) == now) {
        }
    }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *other(void *unused) {
    for (int i = 0; i < BLOCKS * MEETINGS; i++)
        meet();
    return unused;
}

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

int main(void) {
    static double times[BLOCKS];
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    for (int block = 0; block < BLOCKS; block++) {
        double start = seconds();
        for (int i = 0; i < MEETINGS; i++)
            meet();
        times[block] = seconds() - start;
    }
    pthread_join(thread, NULL);
    qsort(times, BLOCKS, sizeof times[0], compare);
    printf("%.0f\n", times[BLOCKS / 2] / MEETINGS * 1e9);
    return 0;
}
