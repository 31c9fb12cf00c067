// Package plan decides, and does nothing else: a snapshot of the cluster goes in, a plan with reasons comes out.
package plan
