"""Provider-neutral completions (OpenAI, Anthropic); filled by the LLM judge and generated tests."""
