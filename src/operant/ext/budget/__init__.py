"""Limits of a turn, budgets that bind, what calls cost, and the report of both."""

from operant.sdk import Extension

extension = Extension(
    name="budget",
    setup="operant.ext.budget.desk:setup",
    settings="operant.ext.budget.settings:BudgetSettings",
    section="budgets",
    essential=True,
)
