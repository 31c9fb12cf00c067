package aws_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// imagesOfSeveralAccounts returns images of this account and images of others: shared with it, public and private.
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
		{Name: "twin-a", Arch: "x86_64", Created: day(3)}, {Name: "twin-b", Arch: "x86_64", Created: day(3)},
		{Name: "gone", Arch: "x86_64", Created: day(1), Deprecated: day(2)},
		{Name: "both-amd", Arch: "x86_64", Created: day(1)}, {Name: "both-arm", Arch: "arm64", Created: day(2)},
	}
}

// parametersOfTheAccount returns the account's own parameters in Systems Manager.
func parametersOfTheAccount() map[string]string {
	return map[string]string{
		"/team/image": ec2sim.ImageID("shared"), "plain": ec2sim.ImageID("ours"), "/team/private": ec2sim.ImageID("private"), "/team/wrong": "yesterday's",
	}
}

func TestImageTerms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why  string
		term awsv1.AMISelectorTerm
		want []string
	}{
		{why: "tags alone find an image that another account shares",
			term: awsv1.AMISelectorTerm{Tags: map[string]string{"team": "platform"}}, want: []string{"shared"}},
		{why: "any value of a tag", term: awsv1.AMISelectorTerm{Tags: map[string]string{"team": "*"}}, want: []string{"new"}},
		{why: "a deprecated image gives way to an older one that is not",
			term: awsv1.AMISelectorTerm{Tags: map[string]string{"team": "legacy"}}, want: []string{"new"}},
		{why: "a name does not find what a stranger publishes under it", term: awsv1.AMISelectorTerm{Name: "ours*"}, want: []string{"ours"}},
		{why: "an owner finds its own", term: awsv1.AMISelectorTerm{Name: "*", Owner: "210987654321"}, want: []string{"shared"}},
		{why: "of one day, the last name", term: awsv1.AMISelectorTerm{Name: "twin-*"}, want: []string{"twin-b"}},
		{why: "one that is deprecated where there is no other", term: awsv1.AMISelectorTerm{Name: "gone"}, want: []string{"gone"}},
		{why: "one of each architecture", term: awsv1.AMISelectorTerm{Name: "both-*"}, want: []string{"both-amd", "both-arm"}},
		{why: "a parameter of the account names the image", term: awsv1.AMISelectorTerm{SSMParameter: "/team/image"}, want: []string{"shared"}},
		{why: "a parameter without a path", term: awsv1.AMISelectorTerm{SSMParameter: "plain"}, want: []string{"ours"}},
		{why: "a parameter by its ARN", term: awsv1.AMISelectorTerm{SSMParameter: "arn:aws:ssm:us-east-1:123456789012:parameter/team/image"},
			want: []string{"shared"}},
		{why: "a parameter of Amazon's",
			term: awsv1.AMISelectorTerm{SSMParameter: "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/image_id"},
			want: []string{"amazon-eks-node-al2023-arm64-standard-1.36-v20261102"}},
		{why: "a parameter that is not there", term: awsv1.AMISelectorTerm{SSMParameter: "/team/none"}},
		{why: "a parameter that names no image", term: awsv1.AMISelectorTerm{SSMParameter: "/team/wrong"}},
		{why: "a parameter that names an image of a stranger", term: awsv1.AMISelectorTerm{SSMParameter: "/team/private"}},
		{why: "an image of a stranger", term: awsv1.AMISelectorTerm{ID: ec2sim.ImageID("private")}},
		{why: "an id finds an image whoever owns it", term: awsv1.AMISelectorTerm{ID: ec2sim.ImageID("shared")}, want: []string{"shared"}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Images: imagesOfSeveralAccounts(), Parameters: parametersOfTheAccount()})
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
			if class.IsTrue("Ready") != (tc.want != nil) {
				t.Errorf("ready although it has no images, or not although it has: %+v", class.Status.Conditions)
			}
		})
	}
}

// A deprecated image is replaced the next time the class is resolved, without a change of the class.
func TestADeprecatedImageGivesWay(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Images: []ec2sim.Image{
		{Name: "golden-1", Arch: "x86_64", Created: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)},
		{Name: "golden-2", Arch: "x86_64", Created: time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC)},
	}})
	class := a.NodeClass()
	family := awsv1.AMIFamilyAL2023
	class.Spec.AMIFamily, class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{Name: "golden-*"}}
	look := func(want string) {
		t.Helper()
		a.resolve(a.provider, class)
		if len(class.Status.AMIs) != 1 || class.Status.AMIs[0].Name != want {
			t.Errorf("images %+v, want %s", class.Status.AMIs, want)
		}
	}
	look("golden-2")
	if _, err := a.sim.AddImage(ec2sim.Image{Name: "golden-2", Arch: "x86_64", Created: time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC), Deprecated: time.Date(2026, 10, 3, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	look("golden-1")
}
