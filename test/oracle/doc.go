// Package oracle compares what Tenon asks AWS with what Karpenter asks. Both get the same manifests, one after the other,
// on one laboratory: Karpenter as its authors release it, and the simulated AWS notes the calls of both.
//
// The calls are reduced to documents in which nothing is left that has to differ (canonical.go, userdata.go): names,
// ids, hashes and order. Documents of the same action are then paired and compared field by field (compare.go).
// Every difference has to be in a list with the reason why it stays (differences.go), and what is in the list has to occur.
package oracle
