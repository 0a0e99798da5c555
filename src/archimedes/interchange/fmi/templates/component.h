/* The memory of an instance, and the tables of a model. Included once, by the C file of the FMU. */
#ifndef COMPONENT_H
#define COMPONENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_sizes.h"

/* Arrays of no elements do not exist in C99. */
#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)
#define CONTINUOUS_KNOWNS (STATES + REALS)
#define CONTINUOUS_UNKNOWNS (STATES + OUTPUT_REALS + EVENTS)

/* Where a variable lies. */
enum {
    BANK_TIME, BANK_X, BANK_DX, BANK_REAL, BANK_INTEGER, BANK_BOOLEAN,
    BANK_Y_REAL, BANK_Y_INTEGER, BANK_Y_BOOLEAN, BANK_Z
};

/* When it may be set. */
enum { SET_NEVER, SET_START, SET_INPUT, SET_DISCRETE, SET_TUNABLE };

typedef struct {
    uint32_t reference; /* of its first element */
    uint32_t size;
    uint32_t offset;
    unsigned char bank;
    unsigned char rule;
} Variable;

typedef struct {
    uint32_t reference;
    double interval;
    double shift;
} Clock;

#if HAS_CO_SIMULATION
/* Where the solver stands. */
typedef struct {
    double real[AT_LEAST_ONE(RUN_REALS)];
    int64_t integer[AT_LEAST_ONE(RUN_INTEGERS)];
    bool boolean[AT_LEAST_ONE(RUN_BOOLEANS)];
} Run;
#endif

/* All that changes: getting, setting and serialising the state of an FMU copies this struct. */
typedef struct {
    double time;
    double start_time;
    double step_time; /* of the state, in scheduled execution */
    double stop_time;
    double tolerance; /* of the importer, relative to that of the export */
    double next_sample;
    double x[AT_LEAST_ONE(STATES + MEMORIES)]; /* states, then memories of sampled parts */
    double dx[AT_LEAST_ONE(STATES)];
    double z[AT_LEAST_ONE(EVENTS)];
    double real[AT_LEAST_ONE(REALS)]; /* inputs and parameters */
    int64_t integer[AT_LEAST_ONE(INTEGERS)];
    double y_real[AT_LEAST_ONE(OUTPUT_REALS)];
    int64_t y_integer[AT_LEAST_ONE(OUTPUT_INTEGERS)];
    double jacobian[AT_LEAST_ONE(JACOBIAN_ENTRIES)];
#if HAS_CO_SIMULATION
    Run run[2];
#endif
    int32_t mode;
    int32_t kind;
    int32_t current; /* the one of the two runs that counts */
    bool boolean[AT_LEAST_ONE(BOOLEANS)];
    bool y_boolean[AT_LEAST_ONE(OUTPUT_BOOLEANS)];
    bool side[AT_LEAST_ONE(EVENTS)];
    bool stop_defined;
    bool begun;
    bool inputs_changed;
    bool terminated;
    bool is_initial_event;
    bool derivative_known;
    bool outputs_known;
    bool indicators_known;
    bool jacobian_known;
} Data;

#endif
