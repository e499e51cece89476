"""Sizes and bounds that hold for every kind. The database enforces the same figures (`sql/migrations/`)."""

PAYLOAD_BYTES = 256 * 1024
RESULT_BYTES = 64 * 1024
CHECKPOINT_BYTES = 64 * 1024
KEY_BYTES = 512
ERROR_BYTES = 8 * 1024
MAX_ATTEMPTS = 1000
LAMBDA_TIMEOUT_SECONDS = 900
"""The longest that one Lambda invocation may run (AWS Lambda quotas)."""
