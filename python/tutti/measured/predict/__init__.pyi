from .catalogue import execution as execution
from .catalogue import is_default as is_default
from .catalogue import known_algorithms as known_algorithms
from .discrepancy import Scales as Scales
from .hardware import Hardware as Hardware
from .model import CalibratedModel as CalibratedModel
from .model import calibrate as calibrate
