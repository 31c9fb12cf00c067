// Package solve buys machines for demands at the least price it finds. It knows integers only: demands are vectors that
// come in pieces, machines are vectors with a price for each zone, and budgets are numbers. The market gives these
// their meaning, so that a strategy can be read, and tried out, without any Kubernetes.
//
// Solve is the entry point. LowerBound returns a price that no answer can undercut.
//
// Reading order: strategy, bitset, problem, stock, packing, rows, fill, knapsack, simplex, program, search, guided,
// firstfit, fleet, improve, rehearse, solve, bound.
package solve
