package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/test/oracle"
)

// classDocument returns the document about the fields of an EC2NodeClass.
func classDocument() string {
	var text strings.Builder
	text.WriteString(`# The fields of an EC2NodeClass

Every field below ` + "`spec`" + ` of an EC2NodeClass, where it is seen when it changes, and whether Karpenter sends the same. A field is either seen
somewhere or refused by a condition that names it; none is ignored.

Three tests hold the tables. ` + "`TestEveryFieldHasARow`" + ` compares them with the definition of EC2NodeClass and with the manifests of the scenes.
` + "`TestRowsOfTheFields`" + ` launches an instance of each of two classes that differ in one field, on the simulated EC2, and what differs has to be
what the row says, and nothing else. ` + "`make oracle`" + ` gives the manifests of the scenes to Karpenter, unmodified, and to Tenon, and compares what
they send; "the same" means that no accepted difference concerns the row.

"Launch template", "user data" and "fleet" are what Tenon sends with CreateLaunchTemplate and CreateFleet; the names are those of the
requests. "Instance" is what DescribeInstances answers. The user data are those of Amazon Linux 2023, a NodeConfig for nodeadm. "Planned size" is the
capacity that planning expects of a node, and what of it pods can have.
`)
	for _, topic := range oracle.Fields {
		fmt.Fprintf(&text, "\n## %s\n\n| field | where it is seen | Karpenter | scene |\n|---|---|---|---|\n", topic.Title)
		for _, row := range topic.Fields {
			seen := places(row.Seen...)
			if row.Reason != "" {
				seen = fmt.Sprintf("refused: condition `%s` with the reason `%s`", row.Condition, row.Reason)
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", row.Path, seen, compared(&row), row.Scene)
		}
	}
	text.WriteString(`
## Other AMI families

` + "`TestNoFamilyIgnoresAField`" + ` launches classes of AL2, Bottlerocket, Windows and Custom in the same way: each field is seen somewhere, or refused.
[What each family cannot do](../aws.md#ami-families) is refused with the reason ` + "`UnsupportedByAMIFamily`" + `.

With ` + "`amiFamily: Custom`" + `, the user data are yours, unchanged, as with Karpenter. Planning counts on what the other fields of ` + "`kubelet`" + ` say, so your
user data have to tell the kubelet the same; these fields have no effect at all:

`)
	for _, field := range slices.Sorted(slices.Values(oracle.LeftToUserData)) {
		fmt.Fprintf(&text, "* `%s`\n", field)
	}
	return text.String()
}

// places lists places by their kind.
func places(all ...oracle.Place) string {
	var kinds []string
	names := map[string][]string{}
	for _, place := range all {
		kind, name := place.Kind(), place.Name()
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		if !slices.Contains(names[kind], name) {
			names[kind] = append(names[kind], name)
		}
	}
	for i, kind := range kinds {
		kinds[i] = kind + " " + strings.Join(names[kind], ", ")
	}
	return strings.Join(kinds, "; ")
}

// compared says what Karpenter does for a field: what the row says, or in what it differs. A difference that is about one of
// the two sending nothing is there only where the field is not set.
func compared(row *oracle.Field) string {
	if row.Karpenter != "" {
		return row.Karpenter
	}
	always, absence := oracle.Reasons(row.Scene, row.Seen...)
	switch {
	case len(always) > 0:
		return "differs: " + strings.Join(always, "; ")
	case len(absence) > 0:
		return "the same; where the field is not set, it differs: " + strings.Join(absence, "; ")
	}
	return "the same"
}
