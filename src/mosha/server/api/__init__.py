"""REST, version 1: one table of operations, from which the routes, the permissions and openapi.json all follow."""
