from . import advise as advise
from . import calibrate as calibrate
from . import predict as predict
from . import tune as tune
