// Package lifecycle decides what happens to nodes whatever the pending pods ask for: static pools keep their replicas,
// nodes drift, in steps where people want that, expire and become unhealthy, and a node that is removed is drained. Each
// file covers one subject.
//
// Reading order: cost, drain, drift, expiry, repair, static, target, rollout.
package lifecycle
