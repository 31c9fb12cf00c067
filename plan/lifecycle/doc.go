// Package lifecycle is what happens to nodes whatever the pods that wait want: static pools keep their replicas, nodes drift
// and turn unhealthy, and a node that goes is drained. Each file is a subject of its own.
//
// Reading order: cost, drain, drift, expiry, repair, static.
package lifecycle
