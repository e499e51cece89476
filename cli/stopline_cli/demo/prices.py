"""What an attempt may be charged, by what was billed and how much the model had to read."""

from decimal import Decimal

from stopline.policy import Policy
from stopline_cli.demo.ranges import Range, exactly
from stopline_cli.demo.reactions import Billed, Reaction
from stopline_cli.demo.work import Work

_INPUT_USD = "CLOSE_CONVERSATION_INPUT_USD"
_OUTPUT_USD = "CLOSE_CONVERSATION_OUTPUT_USD"
_MOST_PROMPT_BYTES = 48_000
_INSTRUCTION_BYTES = 2_000
_BYTES_PER_TOKEN = 4
"""What the stand-in counts as a token."""
_MOST_ANSWER_TOKENS = 200
_MILLION = 1_000_000


def bill(met: Reaction, work: Work, policy: Policy) -> Range[Decimal]:
    """US dollars for one attempt. A kind without a price costs nothing."""
    reserved = policy.cost.per_attempt_usd
    if reserved is None or met.billed is Billed.NOTHING:
        return exactly(Decimal(0))
    if met.billed is Billed.RESERVATION:
        return exactly(reserved)
    return Range(Decimal(0), _tokens(work, policy))


def _tokens(work: Work, policy: Policy) -> Decimal:
    """The most that a call with this prompt and a short answer is billed."""
    prices = policy.access.environment
    read = Decimal(min(work.prompt_bytes, _MOST_PROMPT_BYTES) + _INSTRUCTION_BYTES) / _BYTES_PER_TOKEN
    return (read * Decimal(prices[_INPUT_USD]) + _MOST_ANSWER_TOKENS * Decimal(prices[_OUTPUT_USD])) / _MILLION
