"""Which model is asked and what its tokens cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal, InvalidOperation

MODEL = "CLOSE_CONVERSATION_MODEL"
INPUT_PRICE = "CLOSE_CONVERSATION_INPUT_USD"
OUTPUT_PRICE = "CLOSE_CONVERSATION_OUTPUT_USD"

NOT_BILLED = frozenset(
    {
        "AccessDeniedException",
        "ModelNotReadyException",
        "ResourceNotFoundException",
        "ThrottlingException",
        "ValidationException",
    }
)
"""Errors with which Bedrock refuses a request before a model sees it. After any other the reservation stands."""

_MILLION = 1_000_000
_MICRODOLLAR = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Model:
    """A model and its prices in US dollars for a million tokens."""

    model_id: str
    input_usd: Decimal
    output_usd: Decimal

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Model":
        """The model that [access.environment] names. Raises ValueError naming the variable and the rule."""
        model_id = environment.get(MODEL, "").strip()
        if not model_id:
            raise ValueError(f"{MODEL}: must name a model or an inference profile; set it in policy.toml")
        return cls(model_id, _price(environment, INPUT_PRICE), _price(environment, OUTPUT_PRICE))

    def cost(self, usage: Mapping[str, object] | None) -> Decimal | None:
        """US dollars for the tokens that an answer reports, rounded up to a millionth; None if it reports none."""
        tokens_in = (usage or {}).get("inputTokens")
        tokens_out = (usage or {}).get("outputTokens")
        if not isinstance(tokens_in, int) or not isinstance(tokens_out, int):
            return None
        usd = (tokens_in * self.input_usd + tokens_out * self.output_usd) / _MILLION
        return usd.quantize(_MICRODOLLAR, rounding=ROUND_UP)


def _price(environment: Mapping[str, str], variable: str) -> Decimal:
    try:
        price = Decimal(environment.get(variable, ""))
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or price < 0:
        raise ValueError(f"{variable}: must be US dollars for a million tokens, such as 3.00; set it in policy.toml")
    return price
