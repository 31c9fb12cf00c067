// Package disrupt decides which nodes go. Every node of a NodePool is judged for every reason: by what keeps it, by the
// budgets, then by room and price.
//
// What becomes of the cluster without some nodes is asked thousands of times, so it must not cost a plan each: a Simulation
// is set up once, and each question is a trial of it that is taken back (simulation.go, trial.go).
//
// Reading order: pdb, budgetbook, rates, candidate, balance, simulation, purchase, trial, opening, rehearsal,
// decision, shrinking, consolidation, group, empty, renew, disrupt, confirm.
package disrupt
