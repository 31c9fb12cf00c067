// Command live is the first contact with a real AWS account: it launches a handful of small instances through Tenon's own
// provider (cloud/aws), asks EC2 what nobody of us could ask so far, above all what the replay of a spent token of an instant
// fleet brings, and takes everything away again. Nothing runs without the flag --really-spend-money.
//
// What it does is a table of steps (steps.go). A step that Tenon's promises rest on passes or fails; one that only shows how
// EC2 is, since the documentation is silent, is observed; one that lacks something, such as a cluster, is not run, and says
// so. Everything is tagged tenon-live=<run>, and nothing without that tag is ever touched (cleanup.go).
//
// Each request and its raw reply go to a file (record.go), without credentials and with names masked. The command's
// sub-command cases makes cases of it (cases.go), and a test plays those to the simulated EC2 (cases_test.go): so the simulator
// learns from whoever has an account.
//
// The test of this package runs the same program, line by line, on cloud/ec2sim.
package main
