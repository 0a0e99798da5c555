/* The functions of FMI 2.0 (specification, 2.1, 3.2 and 4.2): their types and prototypes. FMUs in
   source form leave this header to the importer. */
#ifndef ARCHIMEDES_FMI2_FUNCTIONS_H
#define ARCHIMEDES_FMI2_FUNCTIONS_H

#include "fmi2FunctionTypes.h"

#define fmi2Version "2.0"
#define fmi2FullName(name) FMI2_NAME(name)

#ifdef __cplusplus
extern "C" {
#endif

#define FMI2_FUNCTION(result, name, ...)                                                            \
    typedef result name##TYPE(__VA_ARGS__);                                                        \
    FMI2_Export name##TYPE name;

FMI2_FUNCTION(const char *, fmi2GetTypesPlatform, void)
FMI2_FUNCTION(const char *, fmi2GetVersion, void)
FMI2_FUNCTION(fmi2Status, fmi2SetDebugLogging, fmi2Component, fmi2Boolean, size_t,
              const fmi2String[])
FMI2_FUNCTION(fmi2Component, fmi2Instantiate, fmi2String, fmi2Type, fmi2String, fmi2String,
              const fmi2CallbackFunctions *, fmi2Boolean, fmi2Boolean)
FMI2_FUNCTION(void, fmi2FreeInstance, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2SetupExperiment, fmi2Component, fmi2Boolean, fmi2Real, fmi2Real,
              fmi2Boolean, fmi2Real)
FMI2_FUNCTION(fmi2Status, fmi2EnterInitializationMode, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2ExitInitializationMode, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2Terminate, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2Reset, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2GetReal, fmi2Component, const fmi2ValueReference[], size_t,
              fmi2Real[])
FMI2_FUNCTION(fmi2Status, fmi2GetInteger, fmi2Component, const fmi2ValueReference[], size_t,
              fmi2Integer[])
FMI2_FUNCTION(fmi2Status, fmi2GetBoolean, fmi2Component, const fmi2ValueReference[], size_t,
              fmi2Boolean[])
FMI2_FUNCTION(fmi2Status, fmi2GetString, fmi2Component, const fmi2ValueReference[], size_t,
              fmi2String[])
FMI2_FUNCTION(fmi2Status, fmi2SetReal, fmi2Component, const fmi2ValueReference[], size_t,
              const fmi2Real[])
FMI2_FUNCTION(fmi2Status, fmi2SetInteger, fmi2Component, const fmi2ValueReference[], size_t,
              const fmi2Integer[])
FMI2_FUNCTION(fmi2Status, fmi2SetBoolean, fmi2Component, const fmi2ValueReference[], size_t,
              const fmi2Boolean[])
FMI2_FUNCTION(fmi2Status, fmi2SetString, fmi2Component, const fmi2ValueReference[], size_t,
              const fmi2String[])
FMI2_FUNCTION(fmi2Status, fmi2GetFMUstate, fmi2Component, fmi2FMUstate *)
FMI2_FUNCTION(fmi2Status, fmi2SetFMUstate, fmi2Component, fmi2FMUstate)
FMI2_FUNCTION(fmi2Status, fmi2FreeFMUstate, fmi2Component, fmi2FMUstate *)
FMI2_FUNCTION(fmi2Status, fmi2SerializedFMUstateSize, fmi2Component, fmi2FMUstate, size_t *)
FMI2_FUNCTION(fmi2Status, fmi2SerializeFMUstate, fmi2Component, fmi2FMUstate, fmi2Byte[], size_t)
FMI2_FUNCTION(fmi2Status, fmi2DeSerializeFMUstate, fmi2Component, const fmi2Byte[], size_t,
              fmi2FMUstate *)
FMI2_FUNCTION(fmi2Status, fmi2GetDirectionalDerivative, fmi2Component, const fmi2ValueReference[],
              size_t, const fmi2ValueReference[], size_t, const fmi2Real[], fmi2Real[])

FMI2_FUNCTION(fmi2Status, fmi2EnterEventMode, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2NewDiscreteStates, fmi2Component, fmi2EventInfo *)
FMI2_FUNCTION(fmi2Status, fmi2EnterContinuousTimeMode, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2CompletedIntegratorStep, fmi2Component, fmi2Boolean, fmi2Boolean *,
              fmi2Boolean *)
FMI2_FUNCTION(fmi2Status, fmi2SetTime, fmi2Component, fmi2Real)
FMI2_FUNCTION(fmi2Status, fmi2SetContinuousStates, fmi2Component, const fmi2Real[], size_t)
FMI2_FUNCTION(fmi2Status, fmi2GetDerivatives, fmi2Component, fmi2Real[], size_t)
FMI2_FUNCTION(fmi2Status, fmi2GetEventIndicators, fmi2Component, fmi2Real[], size_t)
FMI2_FUNCTION(fmi2Status, fmi2GetContinuousStates, fmi2Component, fmi2Real[], size_t)
FMI2_FUNCTION(fmi2Status, fmi2GetNominalsOfContinuousStates, fmi2Component, fmi2Real[], size_t)

FMI2_FUNCTION(fmi2Status, fmi2SetRealInputDerivatives, fmi2Component, const fmi2ValueReference[],
              size_t, const fmi2Integer[], const fmi2Real[])
FMI2_FUNCTION(fmi2Status, fmi2GetRealOutputDerivatives, fmi2Component, const fmi2ValueReference[],
              size_t, const fmi2Integer[], fmi2Real[])
FMI2_FUNCTION(fmi2Status, fmi2DoStep, fmi2Component, fmi2Real, fmi2Real, fmi2Boolean)
FMI2_FUNCTION(fmi2Status, fmi2CancelStep, fmi2Component)
FMI2_FUNCTION(fmi2Status, fmi2GetStatus, fmi2Component, fmi2StatusKind, fmi2Status *)
FMI2_FUNCTION(fmi2Status, fmi2GetRealStatus, fmi2Component, fmi2StatusKind, fmi2Real *)
FMI2_FUNCTION(fmi2Status, fmi2GetIntegerStatus, fmi2Component, fmi2StatusKind, fmi2Integer *)
FMI2_FUNCTION(fmi2Status, fmi2GetBooleanStatus, fmi2Component, fmi2StatusKind, fmi2Boolean *)
FMI2_FUNCTION(fmi2Status, fmi2GetStringStatus, fmi2Component, fmi2StatusKind, fmi2String *)

#undef FMI2_FUNCTION

#ifdef __cplusplus
}
#endif

#endif
