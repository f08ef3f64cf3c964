"""Every rule that ships. A plugin's rules are added to these."""

from typing import Final

from contextd.scrubbing.rule import Judge, Rule
from contextd.scrubbing.rules_ai import AI_RULES
from contextd.scrubbing.rules_cloud import CLOUD_RULES
from contextd.scrubbing.rules_code import CODE_RULES
from contextd.scrubbing.rules_delivery import DELIVERY_RULES
from contextd.scrubbing.rules_files import FILE_RULES
from contextd.scrubbing.rules_generic import GENERIC_RULES
from contextd.scrubbing.rules_keys import KEY_RULES
from contextd.scrubbing.rules_operations import OPERATIONS_RULES
from contextd.scrubbing.rules_products import PRODUCT_RULES

__all__ = ["RULES", "Judge", "Rule"]

RULES: Final[tuple[Rule, ...]] = (
    *CLOUD_RULES,
    *CODE_RULES,
    *DELIVERY_RULES,
    *AI_RULES,
    *OPERATIONS_RULES,
    *PRODUCT_RULES,
    *KEY_RULES,
    *FILE_RULES,
    *GENERIC_RULES,
)
