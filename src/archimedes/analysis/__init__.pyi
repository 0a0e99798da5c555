from archimedes.analysis.findings import Finding as Finding
from archimedes.analysis.findings import Report as Report
from archimedes.analysis.units.checking import UnitsCheck as UnitsCheck
from archimedes.analysis.units.checking import UnitsReport as UnitsReport
from archimedes.analysis.units.checking import check_units as check_units
from archimedes.analysis.units.quantity import quantity as quantity
from archimedes.analysis.units.unit import UnitsError as UnitsError
