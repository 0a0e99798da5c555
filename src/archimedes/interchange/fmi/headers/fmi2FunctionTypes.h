/* The types of callbacks of FMI 2.0 (specification, 2.1.5), which FMUs in source form leave to the
   importer. */
#ifndef ARCHIMEDES_FMI2_FUNCTION_TYPES_H
#define ARCHIMEDES_FMI2_FUNCTION_TYPES_H

#include "fmi2TypesPlatform.h"

typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String,
                                   fmi2String, ...);
typedef void *(*fmi2CallbackAllocateMemory)(size_t, size_t);
typedef void (*fmi2CallbackFreeMemory)(void *);
typedef void (*fmi2StepFinished)(fmi2ComponentEnvironment, fmi2Status);

#endif
