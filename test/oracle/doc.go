// Package oracle compares Tenon's calls to AWS with Karpenter's. Both get the same manifests, one after the other, on one
// laboratory; Karpenter is the release of its authors. The simulated AWS records the calls of both.
//
// The calls are reduced to documents without what must differ (canonical.go, userdata.go): names, ids, hashes and order.
// Documents of the same action are then paired and compared field by field (compare.go). Every difference must be in a list
// with the reason why it is accepted (differences.go), and everything in the list must occur.
//
// Two tables say what this covers: for each field of an EC2NodeClass (fields.go) and each label of nodes (labels.go), where
// its value is seen, and which scene sets it. Tests of cloud/aws and test/scheduling prove the rows, and internal/reference
// writes docs/reference from them.
package oracle
