"""Measurements. They print figures and assert nothing about time: machines differ."""
