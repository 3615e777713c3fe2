// Only marks the root of this module: tests/go_parity builds it with -modfile and the versions of the test bed's agent.
module oracle/agent

go 1.26.0
