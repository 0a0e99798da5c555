from archimedes.vehicles.dave_ml.dave_model import CheckReport as CheckReport
from archimedes.vehicles.dave_ml.dave_model import CheckRow as CheckRow
from archimedes.vehicles.dave_ml.dave_model import DaveModel as DaveModel
from archimedes.vehicles.dave_ml.dave_model import ImportReport as ImportReport
from archimedes.vehicles.dave_ml.dave_model import read as read
