/* The C interface of the Functional Mock-up Interface 2.0, as its specification describes it
   (sections 2.1, 3.2 and 4.2): types, and the functions that this FMU has. */
#ifndef FMI2_INTERFACE_H
#define FMI2_INTERFACE_H

#include <stddef.h>

typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef char fmi2Char;
typedef const fmi2Char *fmi2String;
typedef char fmi2Byte;

#define fmi2True 1
#define fmi2False 0

typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum {
    fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated
} fmi2StatusKind;

typedef struct {
    void (*logger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;

typedef struct {
    fmi2Boolean newDiscreteStatesNeeded;
    fmi2Boolean terminateSimulation;
    fmi2Boolean nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged;
    fmi2Boolean nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;

/* To link several FMUs statically, define FMI2_FUNCTION_PREFIX as the identifier of the model and an
   underscore; a shared library has the plain names. */
#ifdef FMI2_OVERRIDE_FUNCTION_PREFIX
#undef FMI2_FUNCTION_PREFIX
#endif
#ifdef FMI2_FUNCTION_PREFIX
#define FMI2_PASTE(a, b) a##b
#define FMI2_PASTE_LATER(a, b) FMI2_PASTE(a, b)
#define FMI2_NAME(name) FMI2_PASTE_LATER(FMI2_FUNCTION_PREFIX, name)
#else
#define FMI2_NAME(name) name
#endif

#ifndef FMI2_Export
#if defined(_WIN32) || defined(__CYGWIN__)
#define FMI2_Export __declspec(dllexport)
#elif defined(__GNUC__)
#define FMI2_Export __attribute__((visibility("default")))
#else
#define FMI2_Export
#endif
#endif

#endif
