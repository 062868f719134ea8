"""From records to conclusions: means, paired differences, intervals and verdicts. Never imports torch."""
