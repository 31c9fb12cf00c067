// Package rules says what pods ask of each other and of the volumes they mount: topology spread, pod affinity and
// anti-affinity, the ladder of preferences, and where a volume may be.
//
// A Group counts one kind of pods by the domains of one label, and rules are over groups. What a pod's volumes ask is a
// choice of conditions on labels, and how many have to be attached.
//
// Reading order: topology, rules, ladder, volume_index, volume_attach, volume_static, volume_needs.
package rules
