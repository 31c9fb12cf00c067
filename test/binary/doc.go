// Package binary holds the production program, bin/tenon, to what docs/deploying.md promises of it. make build has to come first.
package binary
