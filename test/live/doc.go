// Command live is the first contact with a real AWS account: it launches a handful of small instances through Tenon's own
// provider (cloud/aws), tries on EC2 what could not be tried so far, above all what the replay of a spent token of an
// instant fleet returns, and removes everything again. Nothing runs without the flag --really-spend-money.
//
// Its work is a table of steps (steps.go). A step that Tenon's promises rest on passes or fails; one that only shows how EC2
// behaves where the documentation is silent is observed; one that lacks something, such as a cluster, is not run, and says
// so. Everything is tagged tenon-live=<run>, and nothing without that tag is ever touched (cleanup.go).
//
// Each request and its raw reply are written to a file (record.go), without credentials and with names masked. The
// sub-command cases turns it into cases (cases.go), which a test replays to the simulated EC2 (cases_test.go): so the
// simulator learns from whoever has an account.
//
// The test of this package runs the same program, line by line, on cloud/ec2sim.
package main
