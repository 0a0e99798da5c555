/* What both versions of FMI share: modes, values, the solve of a co-simulation, events and partial
   derivatives. Included by fmi2.c or fmi3.c, behind equations.c. */

/* Modes of an instance, as bits. */
enum {
    INSTANTIATED = 1, INITIALIZATION = 2, EVENT_MODE = 4, CONTINUOUS_TIME = 8, STEP_MODE = 16,
    CLOCK_ACTIVATION = 32, TERMINATED = 64, CONFIGURATION = 128, FAILED = 256
};
#define RUNNING_MODES (EVENT_MODE | CONTINUOUS_TIME | STEP_MODE | CLOCK_ACTIVATION)
#define READABLE_MODES (INITIALIZATION | RUNNING_MODES | TERMINATED | FAILED)
#define ANY_MODE (INSTANTIATED | CONFIGURATION | READABLE_MODES)

enum { MODEL_EXCHANGE, CO_SIMULATION, SCHEDULED_EXECUTION };

/* The numbers of fmi2Status and fmi3Status. */
enum { STATUS_OK, STATUS_WARNING, STATUS_DISCARD, STATUS_ERROR, STATUS_FATAL };

typedef struct Instance Instance;

/* Written by fmi2.c or fmi3.c: pass a message to the importer. */
static void send_message(const Instance *instance, int status, const char *category,
                         const char *message);

/* The memory of an instance: what changes, and what the importer gave. */
struct Instance {
    Data data;
    char *name;
    bool logging;
    void *environment;
#ifdef FMI2
    const fmi2CallbackFunctions *functions;
#else
    fmi3LogMessageCallback log_message;
    fmi3IntermediateUpdateCallback intermediate_update;
    fmi3LockPreemptionCallback lock_preemption;
    fmi3UnlockPreemptionCallback unlock_preemption;
    bool early_return_allowed;
#endif
    double seed[AT_LEAST_ONE(CONTINUOUS_KNOWNS)];
    double sensitivity[AT_LEAST_ONE(CONTINUOUS_UNKNOWNS)];
};

static const char *mode_name(int mode)
{
    switch (mode) {
    case INSTANTIATED: return "instantiated";
    case INITIALIZATION: return "initialization mode";
    case EVENT_MODE: return "event mode";
    case CONTINUOUS_TIME: return "continuous-time mode";
    case STEP_MODE: return "step mode";
    case CLOCK_ACTIVATION: return "clock activation mode";
    case TERMINATED: return "terminated";
    case CONFIGURATION: return "configuration mode";
    default: return "failed";
    }
}

#define MAGNITUDE(value) ((value) < 0.0 ? -(value) : (value))

static bool is_finite(double value)
{
    return value - value == 0.0;
}

static int fail(const Instance *instance, const char *function, const char *message)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s: %s", function, message);
    send_message(instance, STATUS_ERROR, "logStatusError", text);
    return STATUS_ERROR;
}

/* Return whether a function may be called now; if not, say so. */
static bool allow(const Instance *instance, int modes, const char *function)
{
    char text[160];
    if (instance == NULL) {
        return false;
    }
    if ((instance->data.mode & modes) != 0) {
        return true;
    }
    (void)snprintf(text, sizeof text, "must not be called while the instance is in the state '%s'",
                   mode_name(instance->data.mode));
    (void)fail(instance, function, text);
    return false;
}

/* ---- instances ---------------------------------------------------------------------------- */

static void forget_results(Data *data)
{
    data->derivative_known = false;
    data->outputs_known = false;
    data->indicators_known = false;
    data->jacobian_known = false;
}

/* Give all variables their start values. */
static void set_start_values(Data *data, int kind)
{
    (void)memset(data, 0, sizeof *data);
    data->kind = kind;
    data->mode = INSTANTIATED;
    data->time = DEFAULT_START_TIME;
    data->start_time = DEFAULT_START_TIME;
    data->stop_time = DEFAULT_STOP_TIME;
    data->tolerance = 1.0;
    (void)memcpy(data->x, start_x, sizeof start_x);
#if REALS > 0
    (void)memcpy(data->real, start_real, sizeof start_real);
#endif
#if INTEGERS > 0
    (void)memcpy(data->integer, start_integer, sizeof start_integer);
#endif
#if BOOLEANS > 0
    (void)memcpy(data->boolean, start_boolean, sizeof start_boolean);
#endif
}

/* Return a new instance, or NULL where the token is wrong or memory is short. */
static Instance *make_instance(const char *name, const char *token, int kind)
{
    size_t length = name == NULL ? 0 : strlen(name);
    Instance *instance = (Instance *)calloc(1, sizeof *instance);
    (void)token;
    if (instance == NULL) {
        return NULL;
    }
    instance->name = (char *)calloc(length + 1, 1);
    if (instance->name == NULL) {
        free(instance);
        return NULL;
    }
    if (length > 0) {
        (void)memcpy(instance->name, name, length);
    }
    set_start_values(&instance->data, kind);
    return instance;
}

static void free_instance(Instance *instance)
{
    if (instance != NULL) {
        free(instance->name);
        free(instance);
    }
}

/* ---- values ------------------------------------------------------------------------------- */

/* Return the variable that has a value reference, or NULL. */
static const Variable *find_variable(uint32_t reference)
{
    size_t low = 0;
    size_t high = VARIABLES;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const Variable *v = &variables[middle];
        if (reference < v->reference) {
            high = middle;
        } else if (reference >= v->reference + v->size) {
            low = middle + 1;
        } else {
            return v;
        }
    }
    return NULL;
}

static void know_derivative(Data *data)
{
    if (!data->derivative_known) {
        evaluate_derivative(data);
        data->derivative_known = true;
    }
}

/* Bring the values of a bank up to date. */
static void know_bank(Data *data, int bank)
{
    if (bank == BANK_DX) {
        know_derivative(data);
    }
#if OUTPUT_REALS + OUTPUT_INTEGERS + OUTPUT_BOOLEANS > 0
    if ((bank == BANK_Y_REAL || bank == BANK_Y_INTEGER || bank == BANK_Y_BOOLEAN) &&
        !data->outputs_known) {
        evaluate_outputs(data);
        data->outputs_known = true;
    }
#endif
#if EVENTS > 0
    if (bank == BANK_Z && !data->indicators_known) {
        evaluate_indicators(data);
        data->indicators_known = true;
    }
#endif
}

/* Return the values of a bank of doubles, or NULL. */
static double *real_bank(Data *data, int bank)
{
    switch (bank) {
    case BANK_TIME: return &data->time;
    case BANK_X: return data->x;
    case BANK_DX: return data->dx;
    case BANK_REAL: return data->real;
    case BANK_Y_REAL: return data->y_real;
    case BANK_Z: return data->z;
    default: return NULL;
    }
}

static int64_t *integer_bank(Data *data, int bank)
{
    return bank == BANK_INTEGER ? data->integer : bank == BANK_Y_INTEGER ? data->y_integer : NULL;
}

static bool *boolean_bank(Data *data, int bank)
{
    return bank == BANK_BOOLEAN ? data->boolean : bank == BANK_Y_BOOLEAN ? data->y_boolean : NULL;
}

/* Return whether a variable may be set now; if not, say why. */
static bool may_set(const Instance *instance, const Variable *v, const char *function)
{
    const int mode = instance->data.mode;
    const int early = INSTANTIATED | INITIALIZATION | CONFIGURATION;
    int modes = 0;
    char text[160];
    switch (v->rule) {
    case SET_START: modes = early; break;
    case SET_INPUT: modes = early | RUNNING_MODES; break;
    case SET_DISCRETE:
    case SET_TUNABLE: modes = early | EVENT_MODE | STEP_MODE | CLOCK_ACTIVATION; break;
    default: break;
    }
    if ((modes & mode) != 0) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "the variable with value reference %lu must not be set in the state '%s'",
                   (unsigned long)v->reference, mode_name(mode));
    (void)fail(instance, function, text);
    return false;
}

static int unknown_reference(const Instance *instance, uint32_t reference, const char *function,
                             const char *type)
{
    char text[160];
    (void)snprintf(text, sizeof text, "no variable of type %s has the value reference %lu", type,
                   (unsigned long)reference);
    return fail(instance, function, text);
}

/* Note that inputs or parameters have other values. */
static void note_change(Data *data)
{
    forget_results(data);
    data->inputs_changed = true;
}

/* ---- start -------------------------------------------------------------------------------- */

static int enter_initialization(Instance *instance, bool tolerance_defined, double tolerance,
                                double start_time, bool stop_defined, double stop_time,
                                const char *function)
{
    Data *data = &instance->data;
    if (!is_finite(start_time)) {
        return fail(instance, function, "the start time is not finite");
    }
    if (stop_defined && !(stop_time >= start_time)) {
        return fail(instance, function, "the stop time lies before the start time");
    }
    if (tolerance_defined && !(tolerance > 0.0 && tolerance < 1.0)) {
        return fail(instance, function, "the tolerance must lie between 0 and 1");
    }
    data->tolerance = tolerance_defined ? tolerance / DEFAULT_TOLERANCE : 1.0;
    data->time = start_time;
    data->start_time = start_time;
    data->step_time = start_time;
    data->stop_defined = stop_defined;
    data->stop_time = stop_defined ? stop_time : DEFAULT_STOP_TIME;
    forget_results(data);
    return STATUS_OK;
}

#if SAMPLED_PARTS > 0 && (HAS_CO_SIMULATION || HAS_MODEL_EXCHANGE)
/* Let the sampled parts that are due act, and find the time of the next ones. */
static void sample_parts(Data *data)
{
    double x[AT_LEAST_ONE(STATES + MEMORIES)];
    evaluate_sample(data, x);
    (void)memcpy(data->x, x, sizeof x);
    evaluate_next_sample(data);
    forget_results(data);
}
#endif

static void exit_initialization(Data *data)
{
    data->begun = false;
    data->is_initial_event = data->kind == MODEL_EXCHANGE;
    forget_results(data);
#if SAMPLED_PARTS > 0 && HAS_CO_SIMULATION
    if (data->kind == CO_SIMULATION) {
        sample_parts(data);
    }
#endif
}

/* ---- co-simulation ------------------------------------------------------------------------ */

#if HAS_CO_SIMULATION
enum { RUN_FINISHED = 0, RUN_EVENT = 1 };

static const char *failure_text(int64_t status)
{
    switch (status) {
    case -1:
        return "the step size became too small: the solution may be singular or discontinuous, "
               "or the system stiff";
    case -2: return "the derivative, the state or an event function became nan or infinite";
    case -5: return "infinitely many events happen at one time: they accumulate or chatter";
    case -7: return "the reset of an event gave nan or infinity";
    default: return "the solver failed";
    }
}

/* Called after each step of the solver: return whether to stop here. */
static bool stop_early(Instance *instance, double time);

/* Make the state of the solver that of the instance. */
static void show_run(Data *data)
{
    const Run *run = &data->run[data->current];
    data->time = run->real[RUN_T];
    (void)memcpy(data->x, &run->real[RUN_X], (STATES + MEMORIES) * sizeof(double));
    forget_results(data);
}

static void use_other_run(Data *data)
{
    data->current = 1 - data->current;
}

/* Solve up to a time, which a fixed step reaches on its grid where it can. */
static int solve_to(Instance *instance, double target, const char *function)
{
    Data *data = &instance->data;
    double reach = target;
    double stop = target;
    if (FIXED_STEP > 0.0) {
        const double count = (target - data->start_time) / FIXED_STEP;
        const double nearest = count < 4e15 ? (double)(int64_t)(count + 0.5) : count;
        if (MAGNITUDE(count - nearest) <= 1e-6) {
            reach = data->start_time + (nearest - 1e-6) * FIXED_STEP;
            stop = data->stop_time;
            if (stop < target - 1e-6 * FIXED_STEP ||
                (stop > target + 1e-6 * FIXED_STEP && stop < target + 0.5 * FIXED_STEP)) {
                stop = target + FIXED_STEP;
            }
        }
    }
    if (!data->begun) {
        evaluate_begin(data, &data->run[data->current], stop);
        data->begun = true;
    } else if (data->inputs_changed) {
        evaluate_restart(data, &data->run[data->current], &data->run[1 - data->current], stop);
        use_other_run(data);
    }
    data->inputs_changed = false;
    for (;;) {
        const Run *run = &data->run[data->current];
        const int64_t status = run->integer[RUN_STATUS];
        const int64_t accepted = run->integer[RUN_ACCEPTED];
        if (status < 0) {
            char text[256];
            show_run(data);
            (void)snprintf(text, sizeof text, "at t = %.17g: %s", data->time, failure_text(status));
            data->mode = FAILED;
            return fail(instance, function, text);
        }
        if (status == RUN_EVENT) {
            data->terminated = true;
            break;
        }
        if (run->real[RUN_T] >= reach) {
            break;
        }
        evaluate_attempt(data, run, &data->run[1 - data->current], stop);
        if (data->run[1 - data->current].real[RUN_T] > target + 1e-6 * FIXED_STEP) {
            /* A sample or the stop time drew the step beyond: it is made again, to the target. */
            stop = target;
            reach = target;
            evaluate_attempt(data, run, &data->run[1 - data->current], stop);
        }
        use_other_run(data);
        if (data->run[data->current].integer[RUN_ACCEPTED] != accepted &&
            data->run[data->current].integer[RUN_STATUS] >= 0) {
            show_run(data);
            if (stop_early(instance, data->time) && data->time < reach) {
                return STATUS_OK;
            }
        }
    }
    show_run(data);
    return STATUS_OK;
}

/* Check the arguments of a step, and make it. */
static int do_step(Instance *instance, double current, double size, const char *function)
{
    Data *data = &instance->data;
    const double scale = MAGNITUDE(current) > size ? MAGNITUDE(current) : size;
    if (!(size > 0.0) || !is_finite(size)) {
        return fail(instance, function, "the communication step size must be positive");
    }
    if (!(MAGNITUDE(current - data->time) <= 1e-6 * size + 1e-12 * scale + 2e-6 * FIXED_STEP)) {
        char text[160];
        (void)snprintf(text, sizeof text,
                       "the current communication point is %.17g, but the instance is at %.17g",
                       current, data->time);
        return fail(instance, function, text);
    }
    if (data->stop_defined && current + size > data->stop_time + 1e-6 * size) {
        return fail(instance, function, "the step goes beyond the stop time");
    }
    if (data->terminated) {
        return fail(instance, function, "a terminal event has ended the simulation");
    }
    return solve_to(instance, current + size, function);
}
#endif

/* ---- events of model exchange ------------------------------------------------------------- */

typedef struct {
    bool states_changed;
    bool terminate;
    bool next_time_defined;
    double next_time;
} EventResult;

/* Act on the events that have happened: sampled parts that are due, and resets. */
static EventResult update_discrete_states(Data *data)
{
    EventResult result = {false, false, false, 0.0};
#if HAS_MODEL_EXCHANGE
    double x[AT_LEAST_ONE(STATES + MEMORIES)];
    (void)memcpy(x, data->x, sizeof x);
#if EVENTS > 0
    {
        bool sides[EVENTS];
        bool fired[EVENTS];
        bool any = false;
        int k;
        evaluate_sides(data, sides);
        for (k = 0; k < EVENTS; ++k) {
            const int change = (int)sides[k] - (int)data->side[k];
            fired[k] = !data->is_initial_event && change != 0 &&
                       (event_directions[k] == 0 || event_directions[k] == change);
            any = any || fired[k];
            result.terminate = result.terminate || (fired[k] && event_is_terminal[k]);
        }
        if (any) {
            evaluate_reset(data, fired, x);
            result.states_changed = memcmp(x, data->x, sizeof x) != 0;
            (void)memcpy(data->x, x, sizeof x);
            forget_results(data);
            evaluate_sides(data, sides);
        }
        (void)memcpy(data->side, sides, sizeof sides);
    }
#endif
#if HAS_PROJECTION
    evaluate_projection(data, x);
    if (memcmp(x, data->x, sizeof x) != 0) {
        (void)memcpy(data->x, x, sizeof x);
        result.states_changed = true;
        forget_results(data);
    }
#endif
#if SAMPLED_PARTS > 0
    if (data->is_initial_event || data->time >= data->next_sample - 1e-9 * (1.0 + MAGNITUDE(data->time))) {
        sample_parts(data);
#if EVENTS > 0
        evaluate_sides(data, data->side);
#endif
    }
    result.next_time_defined = is_finite(data->next_sample);
    result.next_time = data->next_sample;
#endif
    data->is_initial_event = false;
#else
    (void)data;
#endif
    return result;
}

/* Return whether the states have drifted off the manifold of their attitudes. */
static bool needs_projection(Data *data)
{
#if HAS_MODEL_EXCHANGE && HAS_PROJECTION
    double x[AT_LEAST_ONE(STATES + MEMORIES)];
    size_t k;
    evaluate_projection(data, x);
    for (k = 0; k < STATES; ++k) {
        if (MAGNITUDE(x[k] - data->x[k]) > 1e-6) {
            return true;
        }
    }
#else
    (void)data;
#endif
    return false;
}

/* ---- partial derivatives ------------------------------------------------------------------ */

static void know_jacobian(Data *data)
{
#if JACOBIAN_ENTRIES > 0
    if (!data->jacobian_known) {
        evaluate_jacobian(data);
        data->jacobian_known = true;
    }
#else
    (void)data;
#endif
}

/* Return the row of an unknown, -1 for a state (the derivative of a state is a unit vector),
   -2 for what is no unknown. */
static long row_of(const Variable *v)
{
    switch (v->bank) {
    case BANK_DX: return (long)v->offset;
    case BANK_Y_REAL: return (long)(STATES + v->offset);
    case BANK_Z: return (long)(STATES + OUTPUT_REALS + v->offset);
    case BANK_X: return v->offset < STATES ? -1 : -2;
    default: return -2;
    }
}

/* Return the column of a known, or -1. */
static long column_of(const Variable *v)
{
    switch (v->bank) {
    case BANK_X: return v->offset < STATES ? (long)v->offset : -1;
    case BANK_REAL: return (long)(STATES + v->offset);
    default: return -1;
    }
}

/* Multiply the Jacobian with instance->seed into instance->sensitivity. */
static void multiply_jacobian(Instance *instance)
{
    (void)memset(instance->sensitivity, 0, sizeof instance->sensitivity);
    know_jacobian(&instance->data);
#if JACOBIAN_ENTRIES > 0
    {
        size_t column;
        for (column = 0; column < CONTINUOUS_KNOWNS; ++column) {
            const double seed = instance->seed[column];
            uint32_t k;
            if (seed == 0.0) {
                continue;
            }
            for (k = jacobian_columns[column]; k < jacobian_columns[column + 1]; ++k) {
                instance->sensitivity[jacobian_rows[k]] += instance->data.jacobian[k] * seed;
            }
        }
    }
#endif
}

#ifndef FMI2
/* Multiply instance->sensitivity with the Jacobian into instance->seed. */
static void multiply_from_left(Instance *instance)
{
    (void)memset(instance->seed, 0, sizeof instance->seed);
    know_jacobian(&instance->data);
#if JACOBIAN_ENTRIES > 0
    {
        size_t column;
        for (column = 0; column < CONTINUOUS_KNOWNS; ++column) {
            uint32_t k;
            for (k = jacobian_columns[column]; k < jacobian_columns[column + 1]; ++k) {
                const double seed = instance->sensitivity[jacobian_rows[k]];
                if (seed != 0.0) {
                    instance->seed[column] += seed * instance->data.jacobian[k];
                }
            }
        }
    }
#endif
}

#endif

/* ---- the whole state ---------------------------------------------------------------------- */

#define STATE_HEADER 40

/* Copy the data of an instance behind a header that says what they belong to. */
static void write_state(const Data *data, unsigned char *bytes)
{
    (void)memset(bytes, 0, STATE_HEADER);
    (void)memcpy(bytes, INSTANTIATION_TOKEN, sizeof INSTANTIATION_TOKEN < STATE_HEADER
                                                 ? sizeof INSTANTIATION_TOKEN
                                                 : STATE_HEADER);
    (void)memcpy(bytes + STATE_HEADER, data, sizeof *data);
}

static bool read_state(const unsigned char *bytes, size_t size, Data *data)
{
    unsigned char *own;
    bool good;
    if (size != STATE_HEADER + sizeof *data) {
        return false;
    }
    own = (unsigned char *)malloc(size);
    if (own == NULL) {
        return false;
    }
    write_state(data, own);
    good = memcmp(own, bytes, STATE_HEADER) == 0;
    free(own);
    if (good) {
        (void)memcpy(data, bytes + STATE_HEADER, sizeof *data);
        data->current = data->current == 1;
    }
    return good;
}
