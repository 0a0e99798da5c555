/* The C functions of FMI 2.0 for this model. This is the file to compile; it includes the others. */

#define FMI2
#include "fmi2_interface.h"
#include "equations.c"
#include "component.c"

static void send_message(const Instance *instance, int status, const char *category,
                         const char *message)
{
    if (instance->functions != NULL && instance->functions->logger != NULL) {
        instance->functions->logger(instance->functions->componentEnvironment, instance->name,
                                    (fmi2Status)status, category, "%s", message);
    }
}

#if HAS_CO_SIMULATION
static bool stop_early(Instance *instance, double time)
{
    (void)instance;
    (void)time;
    return false;
}
#endif

#define START(modes, name)                                                                        \
    Instance *instance = (Instance *)component;                                                   \
    if (!allow(instance, modes, name)) {                                                          \
        return fmi2Error;                                                                         \
    }

/* ---- instances ---------------------------------------------------------------------------- */

FMI2_Export const char *FMI2_NAME(fmi2GetTypesPlatform)(void)
{
    return "default";
}

FMI2_Export const char *FMI2_NAME(fmi2GetVersion)(void)
{
    return "2.0";
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetDebugLogging)(fmi2Component component,
                                                      fmi2Boolean loggingOn, size_t nCategories,
                                                      const fmi2String categories[])
{
    START(ANY_MODE, "fmi2SetDebugLogging")
    (void)nCategories;
    (void)categories;
    instance->logging = loggingOn != fmi2False;
    return fmi2OK;
}

FMI2_Export fmi2Component FMI2_NAME(fmi2Instantiate)(
    fmi2String instanceName, fmi2Type fmuType, fmi2String fmuGUID, fmi2String fmuResourceLocation,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean loggingOn)
{
    const char *problem = NULL;
    Instance *instance;
    (void)fmuResourceLocation;
    (void)visible;
    if (fmuGUID == NULL || strcmp(fmuGUID, INSTANTIATION_TOKEN) != 0) {
        problem = "fmi2Instantiate: the GUID is not that of this FMU: " INSTANTIATION_TOKEN;
    } else if (instanceName == NULL || instanceName[0] == '\0') {
        problem = "fmi2Instantiate: the instance has no name";
    } else if (fmuType == fmi2CoSimulation ? !HAS_CO_SIMULATION : !HAS_MODEL_EXCHANGE) {
        problem = "fmi2Instantiate: this FMU does not have that interface";
    }
    if (problem != NULL) {
        if (functions != NULL && functions->logger != NULL) {
            functions->logger(functions->componentEnvironment,
                              instanceName == NULL ? "" : instanceName, fmi2Error,
                              "logStatusError", "%s", problem);
        }
        return NULL;
    }
    instance = make_instance(instanceName, fmuGUID,
                             fmuType == fmi2CoSimulation ? CO_SIMULATION : MODEL_EXCHANGE);
    if (instance != NULL) {
        instance->functions = functions;
        instance->logging = loggingOn != fmi2False;
    }
    return instance;
}

FMI2_Export void FMI2_NAME(fmi2FreeInstance)(fmi2Component component)
{
    free_instance((Instance *)component);
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetupExperiment)(fmi2Component component,
                                                      fmi2Boolean toleranceDefined,
                                                      fmi2Real tolerance, fmi2Real startTime,
                                                      fmi2Boolean stopTimeDefined,
                                                      fmi2Real stopTime)
{
    START(INSTANTIATED, "fmi2SetupExperiment")
    return (fmi2Status)enter_initialization(instance, toleranceDefined != fmi2False, tolerance,
                                            startTime, stopTimeDefined != fmi2False, stopTime,
                                            "fmi2SetupExperiment");
}

FMI2_Export fmi2Status FMI2_NAME(fmi2EnterInitializationMode)(fmi2Component component)
{
    START(INSTANTIATED, "fmi2EnterInitializationMode")
    instance->data.mode = INITIALIZATION;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2ExitInitializationMode)(fmi2Component component)
{
    START(INITIALIZATION, "fmi2ExitInitializationMode")
    exit_initialization(&instance->data);
    instance->data.mode = instance->data.kind == CO_SIMULATION ? STEP_MODE : EVENT_MODE;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2Terminate)(fmi2Component component)
{
    START(RUNNING_MODES | FAILED, "fmi2Terminate")
    instance->data.mode = TERMINATED;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2Reset)(fmi2Component component)
{
    START(ANY_MODE, "fmi2Reset")
    set_start_values(&instance->data, instance->data.kind);
    return fmi2OK;
}

/* ---- values ------------------------------------------------------------------------------- */

FMI2_Export fmi2Status FMI2_NAME(fmi2GetReal)(fmi2Component component,
                                              const fmi2ValueReference vr[], size_t nvr,
                                              fmi2Real value[])
{
    size_t k;
    START(ANY_MODE, "fmi2GetReal")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        double *bank = v == NULL ? NULL : real_bank(&instance->data, v->bank);
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2GetReal", "Real");
        }
        know_bank(&instance->data, v->bank);
        value[k] = bank[v->offset + (vr[k] - v->reference)];
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetInteger)(fmi2Component component,
                                                 const fmi2ValueReference vr[], size_t nvr,
                                                 fmi2Integer value[])
{
    size_t k;
    START(ANY_MODE, "fmi2GetInteger")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        int64_t *bank = v == NULL ? NULL : integer_bank(&instance->data, v->bank);
        int64_t number;
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2GetInteger", "Integer");
        }
        know_bank(&instance->data, v->bank);
        number = bank[v->offset + (vr[k] - v->reference)];
        if (number < INT32_MIN || number > INT32_MAX) {
            return (fmi2Status)fail(instance, "fmi2GetInteger",
                                    "a value does not fit in the 32 bits of FMI 2");
        }
        value[k] = (fmi2Integer)number;
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetBoolean)(fmi2Component component,
                                                 const fmi2ValueReference vr[], size_t nvr,
                                                 fmi2Boolean value[])
{
    size_t k;
    START(ANY_MODE, "fmi2GetBoolean")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        bool *bank = v == NULL ? NULL : boolean_bank(&instance->data, v->bank);
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2GetBoolean", "Boolean");
        }
        know_bank(&instance->data, v->bank);
        value[k] = bank[v->offset + (vr[k] - v->reference)] ? fmi2True : fmi2False;
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetString)(fmi2Component component,
                                                const fmi2ValueReference vr[], size_t nvr,
                                                fmi2String value[])
{
    START(ANY_MODE, "fmi2GetString")
    (void)value;
    return nvr == 0 ? fmi2OK
                    : (fmi2Status)unknown_reference(instance, vr[0], "fmi2GetString", "String");
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetReal)(fmi2Component component,
                                              const fmi2ValueReference vr[], size_t nvr,
                                              const fmi2Real value[])
{
    size_t k;
    START(ANY_MODE, "fmi2SetReal")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        double *bank = v == NULL ? NULL : real_bank(&instance->data, v->bank);
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2SetReal", "Real");
        }
        if (!may_set(instance, v, "fmi2SetReal")) {
            return fmi2Error;
        }
        bank += v->offset + (vr[k] - v->reference);
        if (memcmp(bank, &value[k], sizeof *bank) != 0) {
            *bank = value[k];
            note_change(&instance->data);
        }
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetInteger)(fmi2Component component,
                                                 const fmi2ValueReference vr[], size_t nvr,
                                                 const fmi2Integer value[])
{
    size_t k;
    START(ANY_MODE, "fmi2SetInteger")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        int64_t *bank = v == NULL ? NULL : integer_bank(&instance->data, v->bank);
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2SetInteger", "Integer");
        }
        if (!may_set(instance, v, "fmi2SetInteger")) {
            return fmi2Error;
        }
        bank += v->offset + (vr[k] - v->reference);
        if (*bank != value[k]) {
            *bank = value[k];
            note_change(&instance->data);
        }
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetBoolean)(fmi2Component component,
                                                 const fmi2ValueReference vr[], size_t nvr,
                                                 const fmi2Boolean value[])
{
    size_t k;
    START(ANY_MODE, "fmi2SetBoolean")
    for (k = 0; k < nvr; ++k) {
        const Variable *v = find_variable(vr[k]);
        bool *bank = v == NULL ? NULL : boolean_bank(&instance->data, v->bank);
        if (bank == NULL) {
            return (fmi2Status)unknown_reference(instance, vr[k], "fmi2SetBoolean", "Boolean");
        }
        if (!may_set(instance, v, "fmi2SetBoolean")) {
            return fmi2Error;
        }
        bank += v->offset + (vr[k] - v->reference);
        if (*bank != (value[k] != fmi2False)) {
            *bank = value[k] != fmi2False;
            note_change(&instance->data);
        }
    }
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetString)(fmi2Component component,
                                                const fmi2ValueReference vr[], size_t nvr,
                                                const fmi2String value[])
{
    START(ANY_MODE, "fmi2SetString")
    (void)value;
    return nvr == 0 ? fmi2OK
                    : (fmi2Status)unknown_reference(instance, vr[0], "fmi2SetString", "String");
}

/* ---- the whole state ---------------------------------------------------------------------- */

FMI2_Export fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component component, fmi2FMUstate *FMUstate)
{
    START(ANY_MODE, "fmi2GetFMUstate")
    if (*FMUstate == NULL) {
        *FMUstate = malloc(sizeof instance->data);
    }
    if (*FMUstate == NULL) {
        return (fmi2Status)fail(instance, "fmi2GetFMUstate", "out of memory");
    }
    (void)memcpy(*FMUstate, &instance->data, sizeof instance->data);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component component, fmi2FMUstate FMUstate)
{
    START(ANY_MODE, "fmi2SetFMUstate")
    if (FMUstate == NULL) {
        return (fmi2Status)fail(instance, "fmi2SetFMUstate", "the state is NULL");
    }
    (void)memcpy(&instance->data, FMUstate, sizeof instance->data);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component component, fmi2FMUstate *FMUstate)
{
    START(ANY_MODE, "fmi2FreeFMUstate")
    (void)instance;
    free(*FMUstate);
    *FMUstate = NULL;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component component,
                                                             fmi2FMUstate FMUstate, size_t *size)
{
    START(ANY_MODE, "fmi2SerializedFMUstateSize")
    (void)FMUstate;
    *size = STATE_HEADER + sizeof instance->data;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(fmi2Component component,
                                                        fmi2FMUstate FMUstate,
                                                        fmi2Byte serializedState[], size_t size)
{
    START(ANY_MODE, "fmi2SerializeFMUstate")
    if (FMUstate == NULL || size < STATE_HEADER + sizeof instance->data) {
        return (fmi2Status)fail(instance, "fmi2SerializeFMUstate",
                                "the state is NULL or the memory for it too small");
    }
    write_state((const Data *)FMUstate, (unsigned char *)serializedState);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(fmi2Component component,
                                                          const fmi2Byte serializedState[],
                                                          size_t size, fmi2FMUstate *FMUstate)
{
    Data *data;
    START(ANY_MODE, "fmi2DeSerializeFMUstate")
    data = (Data *)calloc(1, sizeof *data);
    if (data == NULL || !read_state((const unsigned char *)serializedState, size, data)) {
        free(data);
        return (fmi2Status)fail(instance, "fmi2DeSerializeFMUstate",
                                "these bytes are not a state of this FMU");
    }
    *FMUstate = data;
    return fmi2OK;
}

/* ---- partial derivatives ------------------------------------------------------------------ */

FMI2_Export fmi2Status FMI2_NAME(fmi2GetDirectionalDerivative)(
    fmi2Component component, const fmi2ValueReference vUnknown_ref[], size_t nUnknown,
    const fmi2ValueReference vKnown_ref[], size_t nKnown, const fmi2Real dvKnown[],
    fmi2Real dvUnknown[])
{
    static const char name[] = "fmi2GetDirectionalDerivative";
    size_t k;
    START(INITIALIZATION | RUNNING_MODES | TERMINATED | FAILED, name)
    (void)memset(instance->seed, 0, sizeof instance->seed);
    for (k = 0; k < nKnown; ++k) {
        const Variable *v = find_variable(vKnown_ref[k]);
        const long column = v == NULL ? -1 : column_of(v);
        if (column < 0) {
            return (fmi2Status)unknown_reference(instance, vKnown_ref[k], name, "known");
        }
        instance->seed[(size_t)column + (vKnown_ref[k] - v->reference)] += dvKnown[k];
    }
    multiply_jacobian(instance);
    for (k = 0; k < nUnknown; ++k) {
        const Variable *v = find_variable(vUnknown_ref[k]);
        const long row = v == NULL ? -2 : row_of(v);
        const uint32_t at = v == NULL ? 0 : vUnknown_ref[k] - v->reference;
        if (row == -2) {
            return (fmi2Status)unknown_reference(instance, vUnknown_ref[k], name, "unknown");
        }
        dvUnknown[k] = row < 0 ? instance->seed[v->offset + at]
                               : instance->sensitivity[(size_t)row + at];
    }
    return fmi2OK;
}

/* ---- model exchange ----------------------------------------------------------------------- */

FMI2_Export fmi2Status FMI2_NAME(fmi2EnterEventMode)(fmi2Component component)
{
    START(CONTINUOUS_TIME | EVENT_MODE, "fmi2EnterEventMode")
    instance->data.mode = EVENT_MODE;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2NewDiscreteStates)(fmi2Component component,
                                                        fmi2EventInfo *eventInfo)
{
    EventResult result;
    START(EVENT_MODE, "fmi2NewDiscreteStates")
    result = update_discrete_states(&instance->data);
    eventInfo->newDiscreteStatesNeeded = fmi2False;
    eventInfo->terminateSimulation = result.terminate;
    eventInfo->nominalsOfContinuousStatesChanged = fmi2False;
    eventInfo->valuesOfContinuousStatesChanged = result.states_changed;
    eventInfo->nextEventTimeDefined = result.next_time_defined;
    eventInfo->nextEventTime = result.next_time;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2EnterContinuousTimeMode)(fmi2Component component)
{
    START(EVENT_MODE, "fmi2EnterContinuousTimeMode")
    instance->data.mode = CONTINUOUS_TIME;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2CompletedIntegratorStep)(
    fmi2Component component, fmi2Boolean noSetFMUStatePriorToCurrentPoint,
    fmi2Boolean *enterEventMode, fmi2Boolean *terminateSimulation)
{
    START(CONTINUOUS_TIME, "fmi2CompletedIntegratorStep")
    (void)noSetFMUStatePriorToCurrentPoint;
    *enterEventMode = needs_projection(&instance->data) ? fmi2True : fmi2False;
    *terminateSimulation = fmi2False;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetTime)(fmi2Component component, fmi2Real time)
{
    START(EVENT_MODE | CONTINUOUS_TIME, "fmi2SetTime")
    instance->data.time = time;
    forget_results(&instance->data);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2SetContinuousStates)(fmi2Component component,
                                                          const fmi2Real x[], size_t nx)
{
    START(CONTINUOUS_TIME, "fmi2SetContinuousStates")
    if (nx != STATES) {
        return (fmi2Status)fail(instance, "fmi2SetContinuousStates", "wrong number of states");
    }
    (void)memcpy(instance->data.x, x, nx * sizeof *x);
    forget_results(&instance->data);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetDerivatives)(fmi2Component component,
                                                     fmi2Real derivatives[], size_t nx)
{
    START(EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED, "fmi2GetDerivatives")
    if (nx != STATES) {
        return (fmi2Status)fail(instance, "fmi2GetDerivatives", "wrong number of states");
    }
    know_derivative(&instance->data);
    (void)memcpy(derivatives, instance->data.dx, nx * sizeof *derivatives);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetEventIndicators)(fmi2Component component,
                                                         fmi2Real eventIndicators[], size_t ni)
{
    START(INITIALIZATION | EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED,
          "fmi2GetEventIndicators")
    if (ni != EVENTS) {
        return (fmi2Status)fail(instance, "fmi2GetEventIndicators",
                                "wrong number of event indicators");
    }
    know_bank(&instance->data, BANK_Z);
    (void)memcpy(eventIndicators, instance->data.z, ni * sizeof *eventIndicators);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetContinuousStates)(fmi2Component component, fmi2Real x[],
                                                          size_t nx)
{
    START(INITIALIZATION | EVENT_MODE | CONTINUOUS_TIME | TERMINATED | FAILED,
          "fmi2GetContinuousStates")
    if (nx != STATES) {
        return (fmi2Status)fail(instance, "fmi2GetContinuousStates", "wrong number of states");
    }
    (void)memcpy(x, instance->data.x, nx * sizeof *x);
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetNominalsOfContinuousStates)(fmi2Component component,
                                                                    fmi2Real x_nominal[],
                                                                    size_t nx)
{
    START(ANY_MODE, "fmi2GetNominalsOfContinuousStates")
    if (nx != STATES) {
        return (fmi2Status)fail(instance, "fmi2GetNominalsOfContinuousStates",
                                "wrong number of states");
    }
    (void)memcpy(x_nominal, nominals, nx * sizeof *x_nominal);
    return fmi2OK;
}

/* ---- co-simulation ------------------------------------------------------------------------ */

FMI2_Export fmi2Status FMI2_NAME(fmi2SetRealInputDerivatives)(fmi2Component component,
                                                              const fmi2ValueReference vr[],
                                                              size_t nvr,
                                                              const fmi2Integer order[],
                                                              const fmi2Real value[])
{
    START(ANY_MODE, "fmi2SetRealInputDerivatives")
    (void)vr;
    (void)order;
    (void)value;
    return nvr == 0 ? fmi2OK
                    : (fmi2Status)fail(instance, "fmi2SetRealInputDerivatives",
                                       "inputs are held between communication points");
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetRealOutputDerivatives)(fmi2Component component,
                                                               const fmi2ValueReference vr[],
                                                               size_t nvr,
                                                               const fmi2Integer order[],
                                                               fmi2Real value[])
{
    START(ANY_MODE, "fmi2GetRealOutputDerivatives")
    (void)vr;
    (void)order;
    (void)value;
    return nvr == 0 ? fmi2OK
                    : (fmi2Status)fail(instance, "fmi2GetRealOutputDerivatives",
                                       "derivatives of outputs are not available");
}

FMI2_Export fmi2Status FMI2_NAME(fmi2DoStep)(fmi2Component component,
                                             fmi2Real currentCommunicationPoint,
                                             fmi2Real communicationStepSize,
                                             fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    int status;
    START(STEP_MODE, "fmi2DoStep")
    (void)noSetFMUStatePriorToCurrentPoint;
#if HAS_CO_SIMULATION
    status = do_step(instance, currentCommunicationPoint, communicationStepSize, "fmi2DoStep");
#else
    (void)currentCommunicationPoint;
    (void)communicationStepSize;
    status = STATUS_ERROR; /* no instance gets here */
#endif
    if (status == STATUS_OK && instance->data.terminated) {
        send_message(instance, STATUS_DISCARD, "logStatusDiscard",
                     "fmi2DoStep: a terminal event ends the simulation");
        return fmi2Discard;
    }
    return (fmi2Status)status;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component component)
{
    START(ANY_MODE, "fmi2CancelStep")
    return (fmi2Status)fail(instance, "fmi2CancelStep", "no step is running asynchronously");
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component component, const fmi2StatusKind s,
                                                fmi2Status *value)
{
    START(STEP_MODE | TERMINATED | FAILED, "fmi2GetStatus")
    if (s != fmi2DoStepStatus) {
        return fmi2Discard;
    }
    *value = instance->data.mode == FAILED ? fmi2Error
             : instance->data.terminated   ? fmi2Discard
                                           : fmi2OK;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component component,
                                                    const fmi2StatusKind s, fmi2Real *value)
{
    START(STEP_MODE | TERMINATED | FAILED, "fmi2GetRealStatus")
    if (s != fmi2LastSuccessfulTime) {
        return fmi2Discard;
    }
    *value = instance->data.time;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetIntegerStatus)(fmi2Component component,
                                                       const fmi2StatusKind s, fmi2Integer *value)
{
    START(STEP_MODE | TERMINATED | FAILED, "fmi2GetIntegerStatus")
    (void)instance;
    (void)s;
    (void)value;
    return fmi2Discard;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetBooleanStatus)(fmi2Component component,
                                                       const fmi2StatusKind s, fmi2Boolean *value)
{
    START(STEP_MODE | TERMINATED | FAILED, "fmi2GetBooleanStatus")
    if (s != fmi2Terminated) {
        return fmi2Discard;
    }
    *value = instance->data.terminated ? fmi2True : fmi2False;
    return fmi2OK;
}

FMI2_Export fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component component,
                                                      const fmi2StatusKind s, fmi2String *value)
{
    START(STEP_MODE | TERMINATED | FAILED, "fmi2GetStringStatus")
    (void)instance;
    (void)s;
    (void)value;
    return fmi2Discard;
}
