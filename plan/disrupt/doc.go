// Package disrupt decides which nodes to remove. It judges every node of a NodePool for every reason: first by what keeps
// the node, then by budgets, then by room and price.
//
// An evaluation asks thousands of times what happens to the cluster without some nodes, and cannot afford a plan each time.
// So a Simulation is set up once, and each question is a trial of it that is rolled back (simulation.go, trial.go).
//
// Reading order: pdb, approval, candidate, budgetbook, rates, rollout, allowance, balance, simulation, purchase, trial, opening,
// rehearsal, decision, shrinking, consolidation, group, empty, renew, disrupt, propose, ordered, join, confirm, observe.
package disrupt
