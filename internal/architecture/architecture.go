// Package architecture contains, as tests, the rules about which package may import which and how large anything may become,
// and measures what they check. `make house` prints the figures of every package.
//
// Imports point one way: cmd → worker → starter, activities → workflows → cluster → plan → cloud → api. Two packages have
// stricter rules, because what they promise depends on them: workflows must be deterministic, so nothing that talks to
// Kubernetes or AWS may be within its reach; plan must be a pure function of its inputs, so it may not reach a network,
// a process or a file, nor a client of any service.
//
// Within the planner the packages below plan are floors: they import one way, solve knows integers only, and everybody else
// imports the package plan. Types stay small, files follow a reading order, and the words are in one glossary.
//
// The tests judge the import graph that the go command itself reports, test files left out.
package architecture

// Module is the path of this module.
const Module = "github.com/tenon-sh/tenon"
