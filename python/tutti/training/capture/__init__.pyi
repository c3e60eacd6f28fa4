from .capturing import capture as capture
from .files import read_step as read_step
from .files import write_step as write_step
from .record import CapturedStep as CapturedStep
from .record import Operator as Operator
from .record import Role as Role
