"""The language of the project: records, Arrow schemas, the table store, the registry, the demo history."""
