package aws_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// imagesOfSeveralAccounts are of this account, shared with it, public and private.
func imagesOfSeveralAccounts() []ec2sim.Image {
	day := func(n int) time.Time { return time.Date(2026, 10, n, 0, 0, 0, 0, time.UTC) }
	team := map[string]string{"team": "platform"}
	return []ec2sim.Image{
		{Name: "ours", Arch: "x86_64", Created: day(1)},
		{Name: "shared", Arch: "x86_64", Owner: "210987654321", Shared: true, Created: day(2), Tags: team},
		{Name: "ours-too", Arch: "x86_64", Owner: "666666666666", Public: true, Created: day(3)},
		{Name: "private", Arch: "x86_64", Owner: "666666666666", Created: day(4), Tags: team},
		{Name: "old", Arch: "x86_64", Created: day(5), Deprecated: day(6), Tags: map[string]string{"team": "legacy"}},
		{Name: "new", Arch: "x86_64", Created: day(4), Tags: map[string]string{"team": "legacy"}},
	}
}

func TestImageTerms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why  string
		term awsv1.AMISelectorTerm
		want []string
	}{
		{"tags alone find an image that another account shares", awsv1.AMISelectorTerm{Tags: map[string]string{"team": "platform"}}, []string{"shared"}},
		{"any value of a tag", awsv1.AMISelectorTerm{Tags: map[string]string{"team": "*"}}, []string{"new"}},
		{"a deprecated image gives way to an older one that is not", awsv1.AMISelectorTerm{Tags: map[string]string{"team": "legacy"}}, []string{"new"}},
		{"a name does not find what a stranger publishes under it", awsv1.AMISelectorTerm{Name: "ours*"}, []string{"ours"}},
		{"an owner finds its own", awsv1.AMISelectorTerm{Name: "*", Owner: "210987654321"}, []string{"shared"}},
		{"an id finds an image whoever owns it", awsv1.AMISelectorTerm{ID: ec2sim.ImageID("shared")}, []string{"shared"}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Images: imagesOfSeveralAccounts()})
			class := a.NodeClass()
			family := awsv1.AMIFamilyAL2023
			class.Spec.AMIFamily, class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{tc.term}
			a.resolve(a.provider, class)
			var got []string
			for _, ami := range class.Status.AMIs {
				got = append(got, ami.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			if !class.IsTrue("Ready") {
				t.Errorf("the class is not ready: %+v", class.Status.Conditions)
			}
		})
	}
}
