"""The checks: functions of a runner that raise if a component fails and return the error that they measured."""
