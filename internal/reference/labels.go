package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/test/oracle"
)

// labelDocument returns the document about labels.
func labelDocument() string {
	var text strings.Builder
	text.WriteString(`# Labels of nodes

The labels by which NodePools (` + "`requirements`" + `) and pods select nodes, and where EC2 says the same about the instance. Each node carries all of them
that apply to its instance.

` + "`TestScheduling`" + ` proves each row on a laboratory: a pod selects the value in the table among all instance types, the real kube-scheduler binds it
to the node that comes up, and the node's label has to be what EC2 says about the instance. ` + "`TestEveryLabelHasARow`" + ` checks that each
label that Tenon knows has a row, and that the scene requires the label; ` + "`make oracle`" + ` compares what Karpenter and Tenon send for the scene.
` + "`make families`" + ` compares the keys with those that Karpenter knows, and records the labels that it gives five instance types;
` + "`TestLabelsOfTypes`" + ` compares Tenon's with the record.

"Instance", "instance type" and "image" are what DescribeInstances, DescribeInstanceTypes and DescribeImages answer.

| label | value in the test | where EC2 says it | Karpenter | scene |
|---|---|---|---|---|
`)
	for _, label := range oracle.Labels {
		if label.Selectable() {
			value := "that of the instance"
			if label.Value != "" {
				value = "`" + label.Value + "`"
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n", label.Key, value, places(label.Seen), comparedLabel(&label), label.Scene)
		}
	}
	text.WriteString("\n## Labels that say how far a node is\n\nTenon sets them, as Karpenter does. They are not for NodePools or pods.\n\n| label | set to `true` |\n|---|---|\n")
	for _, label := range oracle.Labels {
		if label.Mark != "" {
			fmt.Fprintf(&text, "| `%s` | %s |\n", label.Key, label.Mark)
		}
	}
	text.WriteString("\n## Other names\n\nNodePools and pods may use these keys as well.\n\n| key | means |\n|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(oracle.LabelAliases)) {
		fmt.Fprintf(&text, "| `%s` | `%s` |\n", key, oracle.LabelAliases[key])
	}
	return text.String()
}

// comparedLabel says what Karpenter does for a label: what the row says, or in what the label differs in the user data.
func comparedLabel(label *oracle.Label) string {
	if label.Karpenter != "" {
		return label.Karpenter
	}
	always, absence := oracle.Reasons(label.Scene, label.InUserData())
	if reasons := slices.Concat(always, absence); len(reasons) > 0 {
		return "differs: " + strings.Join(reasons, "; ")
	}
	return "the same"
}
