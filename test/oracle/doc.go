// Package oracle compares Tenon's calls to AWS with Karpenter's. Both get the same manifests, one after the other, on one
// laboratory; Karpenter is the release of its authors. The simulated AWS records the calls of both.
//
// The calls are reduced to documents without what must differ (canonical.go, userdata.go): names, ids, hashes and order.
// Documents of the same action are then paired and compared field by field (compare.go). Every difference must be in a list
// with the reason why it is accepted (differences.go), and everything in the list must occur.
package oracle
