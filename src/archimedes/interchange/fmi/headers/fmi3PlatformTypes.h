/* The types of FMI 3.0 (specification, 2.2.2). FMUs in source form leave this header to the importer. */
#ifndef ARCHIMEDES_FMI3_PLATFORM_TYPES_H
#define ARCHIMEDES_FMI3_PLATFORM_TYPES_H

#include "fmi3_interface.h"

#define fmi3True true
#define fmi3False false
#define fmi3ClockActive true
#define fmi3ClockInactive false

#endif
