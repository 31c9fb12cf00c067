// Package rules compiles what pods require of each other, and what the volumes they mount require of nodes: topology
// spread, pod affinity and anti-affinity, the ladder of preferences, and where a volume may be.
//
// A Group counts the pods of one kind by the domains of one label; rules refer to groups. A pod's volumes require one of
// several alternatives of conditions on labels, and a number of attachments.
//
// Reading order: topology, rules, ladder, volume_index, volume_attach, volume_static, volume_needs.
package rules
