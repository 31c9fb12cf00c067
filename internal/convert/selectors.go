package convert

import (
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// selection is one of the terms that a selector of v1alpha1 stands for.
type selection struct {
	id, name, owner string
	tags            map[string]string
}

// selections returns the terms of a selector: a map of tags, in which some keys are not tags but IDs, names and owners, and
// in which values are lists, separated by commas, of which any may match. Names and owners are those of images: elsewhere
// their keys are tags. The terms are all combinations, in the order in which Karpenter's own converter has them.
func selections(selector map[string]string, images bool) []selection {
	if len(selector) == 0 {
		return nil
	}
	ids, names, owners := []string{""}, []string{""}, []string{""}
	tags := []map[string]string{{}}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		values := strings.Split(selector[key], ",")
		for i := range values {
			values[i] = strings.TrimSpace(values[i])
		}
		switch {
		case key == "aws-ids" || key == "aws::ids":
			ids = values
		case key == "aws::name" && images:
			names = values
		case key == "aws::owners" && images:
			owners = values
		default:
			var more []map[string]string
			for _, value := range values {
				for _, set := range tags {
					with := maps.Clone(set)
					with[key] = value
					more = append(more, with)
				}
			}
			tags = more
		}
	}
	var all []selection
	for _, owner := range owners {
		for _, id := range ids {
			for _, name := range names {
				for _, set := range tags {
					if len(set) == 0 {
						set = nil
					}
					all = append(all, selection{id: id, name: name, owner: owner, tags: set})
				}
			}
		}
	}
	return all
}

func subnetTerms(selector map[string]string) []awsv1.SubnetSelectorTerm {
	var terms []awsv1.SubnetSelectorTerm
	for _, s := range selections(selector, false) {
		terms = append(terms, awsv1.SubnetSelectorTerm{Tags: s.tags, ID: s.id})
	}
	return terms
}

func securityGroupTerms(selector map[string]string) []awsv1.SecurityGroupSelectorTerm {
	var terms []awsv1.SecurityGroupSelectorTerm
	for _, s := range selections(selector, false) {
		terms = append(terms, awsv1.SecurityGroupSelectorTerm{Tags: s.tags, ID: s.id})
	}
	return terms
}

func amiTerms(selector map[string]string) []betaAMITerm {
	var terms []betaAMITerm
	for _, s := range selections(selector, true) {
		terms = append(terms, betaAMITerm{Tags: s.tags, ID: s.id, Name: s.name, Owner: s.owner})
	}
	return terms
}
