/* The C functions of FMI 3.0 for this model. This is the file to compile; it includes the others. */

#ifndef FMI3_FUNCTION_PREFIX
#define FMI3_FUNCTION_PREFIX @{identifier}_
#endif
#include "fmi3_interface.h"
#include "equations.c"
#include "component.c"

static void send_message(const Instance *instance, int status, const char *category,
                         const char *message)
{
    if (instance->log_message != NULL) {
        instance->log_message(instance->environment, (fmi3Status)status, category, message);
    }
}

#if HAS_CO_SIMULATION
static bool stop_early(Instance *instance, double time)
{
    bool wanted = false;
    double until = time;
    if (instance->intermediate_update == NULL) {
        return false;
    }
    instance->intermediate_update(instance->environment, time, false, true, true,
                                  instance->early_return_allowed, &wanted, &until);
    return wanted && instance->early_return_allowed && until <= time;
}
#endif

#define START(modes, name)                                                                        \
    Instance *instance = (Instance *)fmu;                                                         \
    if (!allow(instance, modes, name)) {                                                          \
        return fmi3Error;                                                                         \
    }

/* ---- instances ---------------------------------------------------------------------------- */

FMI3_Export const char *FMI3_NAME(fmi3GetVersion)(void)
{
    return "3.0";
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetDebugLogging)(fmi3Instance fmu, fmi3Boolean loggingOn,
                                                      size_t nCategories,
                                                      const fmi3String categories[])
{
    START(ANY_MODE, "fmi3SetDebugLogging")
    (void)nCategories;
    (void)categories;
    instance->logging = loggingOn;
    return fmi3OK;
}

static Instance *instantiate(fmi3String name, fmi3String token, bool logging, void *environment,
                             fmi3LogMessageCallback log_message, int kind, bool available,
                             const char *function)
{
    const char *problem = NULL;
    Instance *instance;
    if (!available) {
        problem = "this FMU does not have that interface";
    } else if (token == NULL || strcmp(token, INSTANTIATION_TOKEN) != 0) {
        problem = "the instantiation token is not that of this FMU: " INSTANTIATION_TOKEN;
    } else if (name == NULL || name[0] == '\0') {
        problem = "the instance has no name";
    }
    if (problem != NULL) {
        if (log_message != NULL) {
            char text[256];
            (void)snprintf(text, sizeof text, "%s: %s", function, problem);
            log_message(environment, fmi3Error, "logStatusError", text);
        }
        return NULL;
    }
    instance = make_instance(name, token, kind);
    if (instance != NULL) {
        instance->environment = environment;
        instance->log_message = log_message;
        instance->logging = logging;
    }
    return instance;
}

FMI3_Export fmi3Instance FMI3_NAME(fmi3InstantiateModelExchange)(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath,
    fmi3Boolean visible, fmi3Boolean loggingOn, fmi3InstanceEnvironment instanceEnvironment,
    fmi3LogMessageCallback logMessage)
{
    (void)resourcePath;
    (void)visible;
    return instantiate(instanceName, instantiationToken, loggingOn, instanceEnvironment, logMessage,
                       MODEL_EXCHANGE, HAS_MODEL_EXCHANGE, "fmi3InstantiateModelExchange");
}

FMI3_Export fmi3Instance FMI3_NAME(fmi3InstantiateCoSimulation)(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath,
    fmi3Boolean visible, fmi3Boolean loggingOn, fmi3Boolean eventModeUsed,
    fmi3Boolean earlyReturnAllowed, const fmi3ValueReference requiredIntermediateVariables[],
    size_t nRequiredIntermediateVariables, fmi3InstanceEnvironment instanceEnvironment,
    fmi3LogMessageCallback logMessage, fmi3IntermediateUpdateCallback intermediateUpdate)
{
    Instance *instance;
    (void)resourcePath;
    (void)visible;
    (void)requiredIntermediateVariables;
    (void)nRequiredIntermediateVariables;
    if (eventModeUsed) {
        if (logMessage != NULL) {
            logMessage(instanceEnvironment, fmi3Error, "logStatusError",
                       "fmi3InstantiateCoSimulation: this FMU has no event mode: events are "
                       "handled within its steps (hasEventMode is false)");
        }
        return NULL;
    }
    instance = instantiate(instanceName, instantiationToken, loggingOn, instanceEnvironment,
                           logMessage, CO_SIMULATION, HAS_CO_SIMULATION,
                           "fmi3InstantiateCoSimulation");
    if (instance != NULL) {
        instance->intermediate_update = intermediateUpdate;
        instance->early_return_allowed = earlyReturnAllowed;
    }
    return instance;
}

FMI3_Export fmi3Instance FMI3_NAME(fmi3InstantiateScheduledExecution)(
    fmi3String instanceName, fmi3String instantiationToken, fmi3String resourcePath,
    fmi3Boolean visible, fmi3Boolean loggingOn, fmi3InstanceEnvironment instanceEnvironment,
    fmi3LogMessageCallback logMessage, fmi3ClockUpdateCallback clockUpdate,
    fmi3LockPreemptionCallback lockPreemption, fmi3UnlockPreemptionCallback unlockPreemption)
{
    Instance *instance;
    (void)resourcePath;
    (void)visible;
    (void)clockUpdate;
    instance = instantiate(instanceName, instantiationToken, loggingOn, instanceEnvironment,
                           logMessage, SCHEDULED_EXECUTION, HAS_SCHEDULED_EXECUTION,
                           "fmi3InstantiateScheduledExecution");
    if (instance != NULL) {
        instance->lock_preemption = lockPreemption;
        instance->unlock_preemption = unlockPreemption;
    }
    return instance;
}

FMI3_Export void FMI3_NAME(fmi3FreeInstance)(fmi3Instance fmu)
{
    free_instance((Instance *)fmu);
}

FMI3_Export fmi3Status FMI3_NAME(fmi3EnterInitializationMode)(fmi3Instance fmu,
                                                              fmi3Boolean toleranceDefined,
                                                              fmi3Float64 tolerance,
                                                              fmi3Float64 startTime,
                                                              fmi3Boolean stopTimeDefined,
                                                              fmi3Float64 stopTime)
{
    int status;
    START(INSTANTIATED, "fmi3EnterInitializationMode")
    status = enter_initialization(instance, toleranceDefined, tolerance, startTime,
                                  stopTimeDefined, stopTime, "fmi3EnterInitializationMode");
    if (status == STATUS_OK) {
        instance->data.mode = INITIALIZATION;
    }
    return (fmi3Status)status;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3ExitInitializationMode)(fmi3Instance fmu)
{
    START(INITIALIZATION, "fmi3ExitInitializationMode")
    exit_initialization(&instance->data);
    instance->data.mode = instance->data.kind == CO_SIMULATION         ? STEP_MODE
                          : instance->data.kind == SCHEDULED_EXECUTION ? CLOCK_ACTIVATION
                                                                       : EVENT_MODE;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3EnterEventMode)(fmi3Instance fmu)
{
    START(CONTINUOUS_TIME | EVENT_MODE, "fmi3EnterEventMode")
    instance->data.mode = EVENT_MODE;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3Terminate)(fmi3Instance fmu)
{
    START(RUNNING_MODES | FAILED, "fmi3Terminate")
    instance->data.mode = TERMINATED;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3Reset)(fmi3Instance fmu)
{
    START(ANY_MODE, "fmi3Reset")
    set_start_values(&instance->data, instance->data.kind);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3EnterConfigurationMode)(fmi3Instance fmu)
{
    START(INSTANTIATED, "fmi3EnterConfigurationMode")
    instance->data.mode = CONFIGURATION;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3ExitConfigurationMode)(fmi3Instance fmu)
{
    START(CONFIGURATION, "fmi3ExitConfigurationMode")
    instance->data.mode = INSTANTIATED;
    return fmi3OK;
}

/* ---- values ------------------------------------------------------------------------------- */

/* Find the variable of a value reference, and check that its values fit. */
static const Variable *find_whole(const Instance *instance, uint32_t reference, size_t left,
                                  const char *function, const char *type)
{
    const Variable *v = find_variable(reference);
    if (v == NULL || v->reference != reference) {
        (void)unknown_reference(instance, reference, function, type);
        return NULL;
    }
    if (left < v->size) {
        (void)fail(instance, function, "nValues is smaller than the size of the variables");
        return NULL;
    }
    return v;
}

#define DEFINE_GET(Name, bank_of, label)                                                          \
    FMI3_Export fmi3Status FMI3_NAME(fmi3Get##Name)(                                              \
        fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,    \
        fmi3##Name values[], size_t nValues)                                                      \
    {                                                                                             \
        size_t k;                                                                                 \
        size_t done = 0;                                                                          \
        START(ANY_MODE, "fmi3Get" label)                                                          \
        for (k = 0; k < nValueReferences; ++k) {                                                  \
            const Variable *v = find_whole(instance, valueReferences[k], nValues - done,          \
                                           "fmi3Get" label, label);                               \
            if (v == NULL) {                                                                      \
                return fmi3Error;                                                                 \
            }                                                                                     \
            if (bank_of(&instance->data, v->bank) == NULL) {                                      \
                return (fmi3Status)unknown_reference(instance, v->reference, "fmi3Get" label,     \
                                                     label);                                      \
            }                                                                                     \
            know_bank(&instance->data, v->bank);                                                  \
            (void)memcpy(values + done, bank_of(&instance->data, v->bank) + v->offset,            \
                         v->size * sizeof *values);                                               \
            done += v->size;                                                                      \
        }                                                                                         \
        return done == nValues ? fmi3OK                                                           \
                               : (fmi3Status)fail(instance, "fmi3Get" label,                      \
                                                  "nValues is not the size of the variables");    \
    }

#define DEFINE_SET(Name, bank_of, label)                                                          \
    FMI3_Export fmi3Status FMI3_NAME(fmi3Set##Name)(                                              \
        fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,    \
        const fmi3##Name values[], size_t nValues)                                                \
    {                                                                                             \
        size_t k;                                                                                 \
        size_t done = 0;                                                                          \
        START(ANY_MODE, "fmi3Set" label)                                                          \
        for (k = 0; k < nValueReferences; ++k) {                                                  \
            const Variable *v = find_whole(instance, valueReferences[k], nValues - done,          \
                                           "fmi3Set" label, label);                               \
            fmi3##Name *bank;                                                                     \
            if (v == NULL) {                                                                      \
                return fmi3Error;                                                                 \
            }                                                                                     \
            bank = bank_of(&instance->data, v->bank);                                             \
            if (bank == NULL) {                                                                   \
                return (fmi3Status)unknown_reference(instance, v->reference, "fmi3Set" label,     \
                                                     label);                                      \
            }                                                                                     \
            if (!may_set(instance, v, "fmi3Set" label)) {                                         \
                return fmi3Error;                                                                 \
            }                                                                                     \
            bank += v->offset;                                                                    \
            if (memcmp(bank, values + done, v->size * sizeof *values) != 0) {                     \
                (void)memcpy(bank, values + done, v->size * sizeof *values);                      \
                note_change(&instance->data);                                                     \
            }                                                                                     \
            done += v->size;                                                                      \
        }                                                                                         \
        return done == nValues ? fmi3OK                                                           \
                               : (fmi3Status)fail(instance, "fmi3Set" label,                      \
                                                  "nValues is not the size of the variables");    \
    }

DEFINE_GET(Float64, real_bank, "Float64")
DEFINE_SET(Float64, real_bank, "Float64")
DEFINE_GET(Int64, integer_bank, "Int64")
DEFINE_SET(Int64, integer_bank, "Int64")
DEFINE_GET(Boolean, boolean_bank, "Boolean")
DEFINE_SET(Boolean, boolean_bank, "Boolean")

/* Types that no variable has. */
#define DEFINE_ABSENT(Name, label)                                                                \
    FMI3_Export fmi3Status FMI3_NAME(fmi3Get##Name)(                                              \
        fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,    \
        fmi3##Name values[], size_t nValues)                                                      \
    {                                                                                             \
        START(ANY_MODE, "fmi3Get" label)                                                          \
        (void)values;                                                                             \
        (void)nValues;                                                                            \
        return nValueReferences == 0                                                              \
                   ? fmi3OK                                                                       \
                   : (fmi3Status)unknown_reference(instance, valueReferences[0],                  \
                                                   "fmi3Get" label, label);                       \
    }                                                                                             \
    FMI3_Export fmi3Status FMI3_NAME(fmi3Set##Name)(                                              \
        fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,    \
        const fmi3##Name values[], size_t nValues)                                                \
    {                                                                                             \
        START(ANY_MODE, "fmi3Set" label)                                                          \
        (void)values;                                                                             \
        (void)nValues;                                                                            \
        return nValueReferences == 0                                                              \
                   ? fmi3OK                                                                       \
                   : (fmi3Status)unknown_reference(instance, valueReferences[0],                  \
                                                   "fmi3Set" label, label);                       \
    }

DEFINE_ABSENT(Float32, "Float32")
DEFINE_ABSENT(Int8, "Int8")
DEFINE_ABSENT(UInt8, "UInt8")
DEFINE_ABSENT(Int16, "Int16")
DEFINE_ABSENT(UInt16, "UInt16")
DEFINE_ABSENT(Int32, "Int32")
DEFINE_ABSENT(UInt32, "UInt32")
DEFINE_ABSENT(UInt64, "UInt64")
DEFINE_ABSENT(String, "String")

FMI3_Export fmi3Status FMI3_NAME(fmi3GetBinary)(fmi3Instance fmu,
                                                const fmi3ValueReference valueReferences[],
                                                size_t nValueReferences, size_t valueSizes[],
                                                fmi3Binary values[], size_t nValues)
{
    START(ANY_MODE, "fmi3GetBinary")
    (void)valueSizes;
    (void)values;
    (void)nValues;
    return nValueReferences == 0 ? fmi3OK
                                 : (fmi3Status)unknown_reference(instance, valueReferences[0],
                                                                 "fmi3GetBinary", "Binary");
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetBinary)(fmi3Instance fmu,
                                                const fmi3ValueReference valueReferences[],
                                                size_t nValueReferences,
                                                const size_t valueSizes[],
                                                const fmi3Binary values[], size_t nValues)
{
    START(ANY_MODE, "fmi3SetBinary")
    (void)valueSizes;
    (void)values;
    (void)nValues;
    return nValueReferences == 0 ? fmi3OK
                                 : (fmi3Status)unknown_reference(instance, valueReferences[0],
                                                                 "fmi3SetBinary", "Binary");
}

/* Return the row of an element in the table of dependencies, or -1. */
static long dependency_row(const Variable *v)
{
    switch (v->bank) {
    case BANK_DX: return (long)v->offset;
    case BANK_Y_REAL: return (long)(STATES + v->offset);
    case BANK_Z: return (long)(STATES + OUTPUT_REALS + v->offset);
    case BANK_Y_INTEGER: return (long)(CONTINUOUS_UNKNOWNS + v->offset);
    case BANK_Y_BOOLEAN: return (long)(CONTINUOUS_UNKNOWNS + OUTPUT_INTEGERS + v->offset);
    default: return -1;
    }
}

/* Return the variable whose dependencies are asked for, with its first row. */
static const Variable *find_dependent(const Instance *instance, uint32_t reference, long *row,
                                      const char *function)
{
    const Variable *v = find_variable(reference);
    *row = v == NULL || v->reference != reference ? -1 : dependency_row(v);
    if (*row < 0) {
        (void)unknown_reference(instance, reference, function, "unknown");
        return NULL;
    }
    return v;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetNumberOfVariableDependencies)(
    fmi3Instance fmu, fmi3ValueReference valueReference, size_t *nDependencies)
{
    static const char name[] = "fmi3GetNumberOfVariableDependencies";
    const Variable *v;
    long row;
    START(ANY_MODE, name)
    v = find_dependent(instance, valueReference, &row, name);
    if (v == NULL) {
        return fmi3Error;
    }
    *nDependencies = dependency_starts[(size_t)row + v->size] - dependency_starts[row];
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetVariableDependencies)(
    fmi3Instance fmu, fmi3ValueReference dependent, size_t elementIndicesOfDependent[],
    fmi3ValueReference independents[], size_t elementIndicesOfIndependents[],
    fmi3DependencyKind dependencyKinds[], size_t nDependencies)
{
    static const char name[] = "fmi3GetVariableDependencies";
    const Variable *v;
    size_t done = 0;
    size_t element;
    long row;
    START(ANY_MODE, name)
    v = find_dependent(instance, dependent, &row, name);
    if (v == NULL) {
        return fmi3Error;
    }
    for (element = 0; element < v->size; ++element) {
        const size_t at = (size_t)row + element;
        uint32_t k;
        for (k = dependency_starts[at]; k < dependency_starts[at + 1]; ++k, ++done) {
            const Variable *known = find_variable(dependencies[k]);
            if (done == nDependencies || known == NULL) {
                return (fmi3Status)fail(instance, name, "nDependencies is too small");
            }
            elementIndicesOfDependent[done] = element + 1;
            independents[done] = known->reference;
            elementIndicesOfIndependents[done] = dependencies[k] - known->reference + 1;
            dependencyKinds[done] = fmi3Dependent;
        }
    }
    return fmi3OK;
}

/* ---- the whole state ---------------------------------------------------------------------- */

FMI3_Export fmi3Status FMI3_NAME(fmi3GetFMUState)(fmi3Instance fmu, fmi3FMUState *FMUState)
{
    START(ANY_MODE, "fmi3GetFMUState")
    if (*FMUState == NULL) {
        *FMUState = malloc(sizeof instance->data);
    }
    if (*FMUState == NULL) {
        return (fmi3Status)fail(instance, "fmi3GetFMUState", "out of memory");
    }
    (void)memcpy(*FMUState, &instance->data, sizeof instance->data);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetFMUState)(fmi3Instance fmu, fmi3FMUState FMUState)
{
    START(ANY_MODE, "fmi3SetFMUState")
    if (FMUState == NULL) {
        return (fmi3Status)fail(instance, "fmi3SetFMUState", "the state is NULL");
    }
    (void)memcpy(&instance->data, FMUState, sizeof instance->data);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3FreeFMUState)(fmi3Instance fmu, fmi3FMUState *FMUState)
{
    START(ANY_MODE, "fmi3FreeFMUState")
    (void)instance;
    free(*FMUState);
    *FMUState = NULL;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SerializedFMUStateSize)(fmi3Instance fmu,
                                                             fmi3FMUState FMUState, size_t *size)
{
    START(ANY_MODE, "fmi3SerializedFMUStateSize")
    (void)FMUState;
    *size = STATE_HEADER + sizeof instance->data;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SerializeFMUState)(fmi3Instance fmu, fmi3FMUState FMUState,
                                                        fmi3Byte serializedState[], size_t size)
{
    START(ANY_MODE, "fmi3SerializeFMUState")
    if (FMUState == NULL || size < STATE_HEADER + sizeof instance->data) {
        return (fmi3Status)fail(instance, "fmi3SerializeFMUState",
                                "the state is NULL or the memory for it too small");
    }
    write_state((const Data *)FMUState, serializedState);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3DeserializeFMUState)(fmi3Instance fmu,
                                                          const fmi3Byte serializedState[],
                                                          size_t size, fmi3FMUState *FMUState)
{
    Data *data;
    START(ANY_MODE, "fmi3DeserializeFMUState")
    data = (Data *)calloc(1, sizeof *data);
    if (data == NULL || !read_state(serializedState, size, data)) {
        free(data);
        return (fmi3Status)fail(instance, "fmi3DeserializeFMUState",
                                "these bytes are not a state of this FMU");
    }
    *FMUState = data;
    return fmi3OK;
}

/* ---- partial derivatives ------------------------------------------------------------------ */

/* Copy between the values of knowns and instance->seed. */
static bool copy_knowns(Instance *instance, const fmi3ValueReference references[], size_t count,
                        const double *in, double *out, size_t size, const char *function)
{
    size_t k;
    size_t done = 0;
    for (k = 0; k < count; ++k) {
        const Variable *v = find_whole(instance, references[k], size - done, function, "known");
        const long column = v == NULL ? -1 : column_of(v);
        uint32_t j;
        if (v != NULL && column < 0) {
            (void)unknown_reference(instance, references[k], function, "known");
        }
        if (column < 0) {
            return false;
        }
        for (j = 0; j < v->size; ++j, ++done) {
            if (in != NULL) {
                instance->seed[(size_t)column + j] += in[done];
            } else {
                out[done] += instance->seed[(size_t)column + j];
            }
        }
    }
    if (done != size) {
        (void)fail(instance, function, "the number of values is not the size of the knowns");
    }
    return done == size;
}

/* Copy between the values of unknowns and instance->sensitivity. A state is an unknown whose
   derivative is a unit vector: then `units` takes or gives the value. */
static bool copy_unknowns(Instance *instance, const fmi3ValueReference references[], size_t count,
                          const double *in, double *out, size_t size, double *units,
                          const char *function)
{
    size_t k;
    size_t done = 0;
    for (k = 0; k < count; ++k) {
        const Variable *v = find_whole(instance, references[k], size - done, function, "unknown");
        const long row = v == NULL ? -2 : row_of(v);
        double *place;
        uint32_t j;
        if (v != NULL && row == -2) {
            (void)unknown_reference(instance, references[k], function, "unknown");
        }
        if (row == -2) {
            return false;
        }
        place = row < 0 ? units + v->offset : instance->sensitivity + row;
        for (j = 0; j < v->size; ++j, ++done) {
            if (in != NULL) {
                place[j] += in[done];
            } else {
                out[done] = place[j];
            }
        }
    }
    if (done != size) {
        (void)fail(instance, function, "the number of values is not the size of the unknowns");
    }
    return done == size;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetDirectionalDerivative)(
    fmi3Instance fmu, const fmi3ValueReference unknowns[], size_t nUnknowns,
    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[], size_t nSeed,
    fmi3Float64 sensitivity[], size_t nSensitivity)
{
    static const char name[] = "fmi3GetDirectionalDerivative";
    START(INITIALIZATION | RUNNING_MODES | TERMINATED | FAILED, name)
    (void)memset(instance->seed, 0, sizeof instance->seed);
    if (!copy_knowns(instance, knowns, nKnowns, seed, NULL, nSeed, name)) {
        return fmi3Error;
    }
    multiply_jacobian(instance);
    return copy_unknowns(instance, unknowns, nUnknowns, NULL, sensitivity, nSensitivity,
                         instance->seed, name)
               ? fmi3OK
               : fmi3Error;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetAdjointDerivative)(
    fmi3Instance fmu, const fmi3ValueReference unknowns[], size_t nUnknowns,
    const fmi3ValueReference knowns[], size_t nKnowns, const fmi3Float64 seed[], size_t nSeed,
    fmi3Float64 sensitivity[], size_t nSensitivity)
{
    static const char name[] = "fmi3GetAdjointDerivative";
    double units[AT_LEAST_ONE(STATES)];
    size_t k;
    START(INITIALIZATION | RUNNING_MODES | TERMINATED | FAILED, name)
    (void)memset(units, 0, sizeof units);
    (void)memset(instance->sensitivity, 0, sizeof instance->sensitivity);
    if (!copy_unknowns(instance, unknowns, nUnknowns, seed, NULL, nSeed, units, name)) {
        return fmi3Error;
    }
    multiply_from_left(instance);
    for (k = 0; k < STATES; ++k) {
        instance->seed[k] += units[k];
    }
    for (k = 0; k < nSensitivity; ++k) {
        sensitivity[k] = 0.0;
    }
    return copy_knowns(instance, knowns, nKnowns, NULL, sensitivity, nSensitivity, name)
               ? fmi3OK
               : fmi3Error;
}

/* ---- clocks ------------------------------------------------------------------------------- */

#if CLOCKS > 0
static const Clock *find_clock(const Instance *instance, uint32_t reference, const char *function)
{
    size_t k;
    for (k = 0; k < CLOCKS; ++k) {
        if (clocks[k].reference == reference) {
            return &clocks[k];
        }
    }
    (void)unknown_reference(instance, reference, function, "Clock");
    return NULL;
}
#else
static const Clock *find_clock(const Instance *instance, uint32_t reference, const char *function)
{
    (void)unknown_reference(instance, reference, function, "Clock");
    return NULL;
}
#endif

FMI3_Export fmi3Status FMI3_NAME(fmi3GetClock)(fmi3Instance fmu,
                                               const fmi3ValueReference valueReferences[],
                                               size_t nValueReferences, fmi3Clock values[])
{
    size_t k;
    START(ANY_MODE, "fmi3GetClock")
    for (k = 0; k < nValueReferences; ++k) {
        if (find_clock(instance, valueReferences[k], "fmi3GetClock") == NULL) {
            return fmi3Error;
        }
        values[k] = false;
    }
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetClock)(fmi3Instance fmu,
                                               const fmi3ValueReference valueReferences[],
                                               size_t nValueReferences, const fmi3Clock values[])
{
    START(ANY_MODE, "fmi3SetClock")
    (void)valueReferences;
    (void)values;
    return nValueReferences == 0
               ? fmi3OK
               : (fmi3Status)fail(instance, "fmi3SetClock",
                                  "clocks are activated by fmi3ActivateModelPartition");
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetIntervalDecimal)(fmi3Instance fmu,
                                                         const fmi3ValueReference valueReferences[],
                                                         size_t nValueReferences,
                                                         fmi3Float64 intervals[],
                                                         fmi3IntervalQualifier qualifiers[])
{
    size_t k;
    START(ANY_MODE, "fmi3GetIntervalDecimal")
    for (k = 0; k < nValueReferences; ++k) {
        const Clock *clock = find_clock(instance, valueReferences[k], "fmi3GetIntervalDecimal");
        if (clock == NULL) {
            return fmi3Error;
        }
        intervals[k] = clock->interval;
        qualifiers[k] = fmi3IntervalUnchanged;
    }
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetShiftDecimal)(fmi3Instance fmu,
                                                      const fmi3ValueReference valueReferences[],
                                                      size_t nValueReferences,
                                                      fmi3Float64 shifts[])
{
    size_t k;
    START(ANY_MODE, "fmi3GetShiftDecimal")
    for (k = 0; k < nValueReferences; ++k) {
        const Clock *clock = find_clock(instance, valueReferences[k], "fmi3GetShiftDecimal");
        if (clock == NULL) {
            return fmi3Error;
        }
        shifts[k] = clock->shift;
    }
    return fmi3OK;
}

/* Functions for clocks of other kinds than those of this FMU. */
#define REFUSE(name)                                                                              \
    START(ANY_MODE, name)                                                                         \
    (void)valueReferences;                                                                        \
    return nValueReferences == 0                                                                  \
               ? fmi3OK                                                                           \
               : (fmi3Status)fail(instance, name, "the intervals of clocks are decimal constants");

FMI3_Export fmi3Status FMI3_NAME(fmi3GetIntervalFraction)(
    fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,
    fmi3UInt64 counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])
{
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    {
        REFUSE("fmi3GetIntervalFraction")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetShiftFraction)(fmi3Instance fmu,
                                                       const fmi3ValueReference valueReferences[],
                                                       size_t nValueReferences,
                                                       fmi3UInt64 counters[],
                                                       fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    {
        REFUSE("fmi3GetShiftFraction")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetIntervalDecimal)(fmi3Instance fmu,
                                                         const fmi3ValueReference valueReferences[],
                                                         size_t nValueReferences,
                                                         const fmi3Float64 intervals[])
{
    (void)intervals;
    {
        REFUSE("fmi3SetIntervalDecimal")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetIntervalFraction)(
    fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,
    const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    {
        REFUSE("fmi3SetIntervalFraction")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetShiftDecimal)(fmi3Instance fmu,
                                                      const fmi3ValueReference valueReferences[],
                                                      size_t nValueReferences,
                                                      const fmi3Float64 shifts[])
{
    (void)shifts;
    {
        REFUSE("fmi3SetShiftDecimal")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetShiftFraction)(fmi3Instance fmu,
                                                       const fmi3ValueReference valueReferences[],
                                                       size_t nValueReferences,
                                                       const fmi3UInt64 counters[],
                                                       const fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    {
        REFUSE("fmi3SetShiftFraction")
    }
}

FMI3_Export fmi3Status FMI3_NAME(fmi3EvaluateDiscreteStates)(fmi3Instance fmu)
{
    START(INITIALIZATION | EVENT_MODE, "fmi3EvaluateDiscreteStates")
    (void)instance;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3UpdateDiscreteStates)(
    fmi3Instance fmu, fmi3Boolean *discreteStatesNeedUpdate, fmi3Boolean *terminateSimulation,
    fmi3Boolean *nominalsOfContinuousStatesChanged, fmi3Boolean *valuesOfContinuousStatesChanged,
    fmi3Boolean *nextEventTimeDefined, fmi3Float64 *nextEventTime)
{
    START(EVENT_MODE, "fmi3UpdateDiscreteStates")
    (void)instance;
    *discreteStatesNeedUpdate = false;
    *nominalsOfContinuousStatesChanged = false;
    {
        const EventResult result = update_discrete_states(&instance->data);
        *terminateSimulation = result.terminate;
        *valuesOfContinuousStatesChanged = result.states_changed;
        *nextEventTimeDefined = result.next_time_defined;
        *nextEventTime = result.next_time;
    }
    return fmi3OK;
}

/* ---- model exchange ----------------------------------------------------------------------- */

FMI3_Export fmi3Status FMI3_NAME(fmi3EnterContinuousTimeMode)(fmi3Instance fmu)
{
    START(EVENT_MODE, "fmi3EnterContinuousTimeMode")
    instance->data.mode = CONTINUOUS_TIME;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3CompletedIntegratorStep)(
    fmi3Instance fmu, fmi3Boolean noSetFMUStatePriorToCurrentPoint, fmi3Boolean *enterEventMode,
    fmi3Boolean *terminateSimulation)
{
    START(CONTINUOUS_TIME, "fmi3CompletedIntegratorStep")
    (void)noSetFMUStatePriorToCurrentPoint;
    *enterEventMode = needs_projection(&instance->data);
    *terminateSimulation = false;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetTime)(fmi3Instance fmu, fmi3Float64 time)
{
    START(EVENT_MODE | CONTINUOUS_TIME, "fmi3SetTime")
    instance->data.time = time;
    forget_results(&instance->data);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3SetContinuousStates)(fmi3Instance fmu,
                                                          const fmi3Float64 continuousStates[],
                                                          size_t nContinuousStates)
{
    START(CONTINUOUS_TIME, "fmi3SetContinuousStates")
    if (nContinuousStates != STATES) {
        return (fmi3Status)fail(instance, "fmi3SetContinuousStates", "wrong number of states");
    }
    (void)memcpy(instance->data.x, continuousStates, nContinuousStates * sizeof(double));
    forget_results(&instance->data);
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetContinuousStateDerivatives)(fmi3Instance fmu,
                                                                    fmi3Float64 derivatives[],
                                                                    size_t nContinuousStates)
{
    START(INITIALIZATION | EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED,
          "fmi3GetContinuousStateDerivatives")
    if (nContinuousStates != STATES) {
        return (fmi3Status)fail(instance, "fmi3GetContinuousStateDerivatives",
                                "wrong number of states");
    }
    know_derivative(&instance->data);
    (void)memcpy(derivatives, instance->data.dx, nContinuousStates * sizeof(double));
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetEventIndicators)(fmi3Instance fmu,
                                                         fmi3Float64 eventIndicators[],
                                                         size_t nEventIndicators)
{
    START(INITIALIZATION | EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED,
          "fmi3GetEventIndicators")
    if (nEventIndicators != EVENTS) {
        return (fmi3Status)fail(instance, "fmi3GetEventIndicators",
                                "wrong number of event indicators");
    }
    know_bank(&instance->data, BANK_Z);
    (void)memcpy(eventIndicators, instance->data.z, nEventIndicators * sizeof(double));
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetContinuousStates)(fmi3Instance fmu,
                                                          fmi3Float64 continuousStates[],
                                                          size_t nContinuousStates)
{
    START(INITIALIZATION | EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED,
          "fmi3GetContinuousStates")
    if (nContinuousStates != STATES) {
        return (fmi3Status)fail(instance, "fmi3GetContinuousStates", "wrong number of states");
    }
    (void)memcpy(continuousStates, instance->data.x, nContinuousStates * sizeof(double));
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetNominalsOfContinuousStates)(fmi3Instance fmu,
                                                                    fmi3Float64 values[],
                                                                    size_t nContinuousStates)
{
    START(ANY_MODE, "fmi3GetNominalsOfContinuousStates")
    if (nContinuousStates != STATES) {
        return (fmi3Status)fail(instance, "fmi3GetNominalsOfContinuousStates",
                                "wrong number of states");
    }
    (void)memcpy(values, nominals, nContinuousStates * sizeof(double));
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetNumberOfEventIndicators)(fmi3Instance fmu,
                                                                 size_t *nEventIndicators)
{
    START(ANY_MODE, "fmi3GetNumberOfEventIndicators")
    (void)instance;
    *nEventIndicators = EVENTS;
    return fmi3OK;
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetNumberOfContinuousStates)(fmi3Instance fmu,
                                                                  size_t *nContinuousStates)
{
    START(ANY_MODE, "fmi3GetNumberOfContinuousStates")
    (void)instance;
    *nContinuousStates = STATES;
    return fmi3OK;
}

/* ---- co-simulation ------------------------------------------------------------------------ */

FMI3_Export fmi3Status FMI3_NAME(fmi3EnterStepMode)(fmi3Instance fmu)
{
    START(ANY_MODE, "fmi3EnterStepMode")
    return (fmi3Status)fail(instance, "fmi3EnterStepMode",
                            "this FMU has no event mode (hasEventMode is false)");
}

FMI3_Export fmi3Status FMI3_NAME(fmi3GetOutputDerivatives)(
    fmi3Instance fmu, const fmi3ValueReference valueReferences[], size_t nValueReferences,
    const fmi3Int32 orders[], fmi3Float64 values[], size_t nValues)
{
    START(ANY_MODE, "fmi3GetOutputDerivatives")
    (void)valueReferences;
    (void)orders;
    (void)values;
    (void)nValues;
    return nValueReferences == 0 ? fmi3OK
                                 : (fmi3Status)fail(instance, "fmi3GetOutputDerivatives",
                                                    "derivatives of outputs are not available");
}

FMI3_Export fmi3Status FMI3_NAME(fmi3DoStep)(fmi3Instance fmu,
                                             fmi3Float64 currentCommunicationPoint,
                                             fmi3Float64 communicationStepSize,
                                             fmi3Boolean noSetFMUStatePriorToCurrentPoint,
                                             fmi3Boolean *eventHandlingNeeded,
                                             fmi3Boolean *terminateSimulation,
                                             fmi3Boolean *earlyReturn,
                                             fmi3Float64 *lastSuccessfulTime)
{
    const double target = currentCommunicationPoint + communicationStepSize;
    int status;
    START(STEP_MODE, "fmi3DoStep")
    (void)noSetFMUStatePriorToCurrentPoint;
#if HAS_CO_SIMULATION
    status = do_step(instance, currentCommunicationPoint, communicationStepSize, "fmi3DoStep");
#else
    status = STATUS_ERROR; /* no instance gets here */
#endif
    *eventHandlingNeeded = false;
    *terminateSimulation = instance->data.terminated;
    *earlyReturn = status == STATUS_OK && !instance->data.terminated &&
                   instance->data.time < target - 1e-6 * communicationStepSize;
    *lastSuccessfulTime = *earlyReturn || instance->data.terminated || status != STATUS_OK
                              ? instance->data.time
                              : target;
    return (fmi3Status)status;
}

/* ---- scheduled execution ------------------------------------------------------------------ */

#if HAS_SCHEDULED_EXECUTION
static int activate(Instance *instance, uint32_t reference, double time, const char *function)
{
    double x[AT_LEAST_ONE(STATES + MEMORIES)];
    Data *data = &instance->data;
    const Clock *clock = find_clock(instance, reference, function);
    (void)memcpy(x, data->x, sizeof x);
    if (clock == NULL) {
        return STATUS_ERROR;
    }
    if (!is_finite(time)) {
        return fail(instance, function, "the activation time is not finite");
    }
    if (instance->lock_preemption != NULL) {
        instance->lock_preemption();
    }
    if (clock - clocks < SAMPLED_PARTS) {
        data->time = time;
        evaluate_partition(data, (int)(clock - clocks), x);
        (void)memcpy(data->x, x, sizeof x);
    } else if (time > data->step_time) {
        /* The step has the length of its clock, unless it was activated at another time. */
        double h = time - data->step_time;
        if (MAGNITUDE(h - clock->interval) <= 1e-6 * clock->interval) {
            h = clock->interval;
        }
        data->time = data->step_time;
        evaluate_advance(data, h, x);
        (void)memcpy(data->x, x, sizeof x);
        data->time = time;
        data->step_time = time;
    }
    forget_results(data);
    if (instance->unlock_preemption != NULL) {
        instance->unlock_preemption();
    }
    return STATUS_OK;
}
#endif

FMI3_Export fmi3Status FMI3_NAME(fmi3ActivateModelPartition)(fmi3Instance fmu,
                                                             fmi3ValueReference clockReference,
                                                             fmi3Float64 activationTime)
{
    START(CLOCK_ACTIVATION, "fmi3ActivateModelPartition")
#if HAS_SCHEDULED_EXECUTION
    return (fmi3Status)activate(instance, clockReference, activationTime,
                                "fmi3ActivateModelPartition");
#else
    (void)clockReference;
    (void)activationTime;
    return fmi3Error; /* no instance gets here */
#endif
}
