"""The protocol A2A 1.0 over our letters. Imported on first use: protobuf and starlette are heavy."""
