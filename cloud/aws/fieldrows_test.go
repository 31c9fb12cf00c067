package aws_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/oracle"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestRowsOfTheFields proves the table of the fields of an EC2NodeClass: of two classes that differ in one field, each
// launches an instance, and what EC2 gets and describes differs in the places of the field's row, and nowhere else. A field
// without a place is refused by the row's condition.
func TestRowsOfTheFields(t *testing.T) {
	t.Parallel()
	accounts := &rowAccounts{t: t}
	for _, topic := range oracle.Fields {
		for _, row := range topic.Fields {
			t.Run(row.Path, func(t *testing.T) {
				a := accounts.of(t, row.Type)
				from, to := a.class(row.From), a.class(row.To)
				if got := changedFields(t, from.Spec, to.Spec); !slices.Equal(got, []string{row.Path}) {
					t.Fatalf("the two classes differ in %q", got)
				}
				if row.Reason != "" {
					a.resolve(a.provider, to)
					field, _, _ := strings.Cut(row.Path, ".")
					if c := to.Condition(row.Condition); c == nil || c.Status != "False" || c.Reason != row.Reason || !strings.Contains(c.Message, "spec."+field) {
						t.Errorf("the condition is %+v, want %s with the reason %s and the name of the field", c, row.Condition, row.Reason)
					}
					return
				}
				seen := make([]bool, len(row.Seen))
				for _, difference := range oracle.Compare(row.Path, a.play(from, row.Type), a.play(to, row.Type)) {
					expected := false
					for i, place := range row.Seen {
						if place.Covers(difference) {
							seen[i], expected = true, true
						}
					}
					if !expected {
						t.Errorf("no place of the row is %s %s: %s, then %s", difference.Action, difference.Path, difference.Karpenter, difference.Tenon)
					}
				}
				for i, place := range row.Seen {
					if !seen[i] {
						t.Errorf("nothing differs in %s %s", place.Action, place.Path)
					}
				}
			})
		}
	}
}

// TestNoFamilyIgnoresAField checks the fields that are seen in the user data or in the size of nodes for the other AMI families,
// of which each has its own form of user data: what the field says arrives somewhere, or a condition refuses it. Custom is
// the exception that the table names.
func TestNoFamilyIgnoresAField(t *testing.T) {
	t.Parallel()
	accounts := &rowAccounts{t: t}
	for name, images := range map[string]string{
		awsv1.AMIFamilyAL2:          `{amiFamily: AL2, amiSelectorTerms: [{id: "${OWN_A}"}]}`,
		awsv1.AMIFamilyBottlerocket: "amiSelectorTerms: [{alias: bottlerocket@latest}]",
		awsv1.AMIFamilyWindows2022:  "amiSelectorTerms: [{alias: windows2022@latest}]",
		awsv1.AMIFamilyCustom:       `{amiFamily: Custom, amiSelectorTerms: [{id: "${OWN_A}"}]}`,
	} {
		for _, topic := range oracle.Fields {
			for _, row := range topic.Fields {
				if strings.HasPrefix(row.Path, "ami") || !slices.ContainsFunc(row.Seen, dependsOnFamily) {
					continue
				}
				t.Run(name+"/"+row.Path, func(t *testing.T) {
					a := accounts.of(t, row.Type)
					judged := a.class(row.To, images)
					a.resolve(a.provider, judged)
					if c := judged.Condition(awsv1.ConditionTypeValidationSucceeded); c.Status == "False" {
						if !slices.Contains([]string{"UnsupportedByAMIFamily", "InvalidUserData"}, c.Reason) {
							t.Errorf("the class is refused with %+v", c)
						}
						return
					}
					from, to := a.class(row.From, images), a.class(row.To, images)
					differences := oracle.Compare(row.Path, a.play(from, row.Type), a.play(to, row.Type))
					ignored := name == awsv1.AMIFamilyCustom && slices.Contains(oracle.LeftToUserData, row.Path)
					if (len(differences) == 0) != ignored {
						t.Errorf("that the field is ignored is expected to be %t; what differs: %v", ignored, differences)
					}
				})
			}
		}
	}
}

// dependsOnFamily reports whether a place is one that the AMI family has a say in.
func dependsOnFamily(p oracle.Place) bool {
	return p.Action == oracle.Planned || strings.HasPrefix(p.Path, "UserData")
}

// rowAccount is the account that the table of fields describes.
type rowAccount struct {
	*account
	reservation, group string
	classes            int
}

// rowAccounts are two such accounts: one with few instance types, and one with all for the rows of others. Each is made when
// it is first needed.
type rowAccounts struct {
	t        *testing.T
	few, all *rowAccount
}

// of returns the account for an instance type of a row, with a worker that has just started: it has launched nothing yet, so
// its launches need not wait for the sake of EC2's limits.
func (r *rowAccounts) of(t *testing.T, instanceType string) *rowAccount {
	t.Helper()
	shared, catalogue := &r.few, "testdata/catalogue.json"
	if instanceType != "" {
		shared, catalogue = &r.all, ""
	}
	if *shared == nil {
		*shared = newRowAccount(r.t, catalogue)
	}
	a := *shared
	a.t = t
	a.provider = a.newProviderOf(func(o *options) { o.DisableDryRun = true })
	return a
}

func newRowAccount(t *testing.T, catalogue string) *rowAccount {
	t.Helper()
	options := ec2sim.Options{
		Images: []ec2sim.Image{
			{Name: "own-a", Arch: "x86_64", Tags: map[string]string{"for": "a"}}, {Name: "own-b", Arch: "x86_64", Tags: map[string]string{"for": "b"}},
			{Name: "other-a", Arch: "x86_64", Owner: "210987654321", Shared: true},
		},
		Parameters:    map[string]string{"/own/a": ec2sim.ImageID("own-a"), "/own/b": ec2sim.ImageID("own-b")},
		CatalogueFile: catalogue,
	}
	a := &rowAccount{account: startAccount(t, options)}
	a.reservation = a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 100, Targeted: true, Tags: map[string]string{"for": "oracle"}})
	made, err := a.ec2.CreatePlacementGroup(t.Context(), &ec2.CreatePlacementGroupInput{GroupName: awssdk.String("group-a"), Strategy: ec2types.PlacementStrategySpread})
	if err != nil {
		t.Fatal(err)
	}
	a.group = *made.PlacementGroup.GroupId
	api := iam.New(iam.Options{Region: a.region, BaseEndpoint: awssdk.String(a.sim.URL()), Credentials: a.ec2.Options().Credentials})
	for _, name := range []string{"one", "two"} {
		if _, err := api.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &name}); err != nil {
			t.Fatal(err)
		}
		if _, err := api.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: awssdk.String("KarpenterNodeRole-blue")}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// class returns a class of its own with specifications put over the ordinary one.
func (a *rowAccount) class(specifications ...string) *awsv1.EC2NodeClass {
	a.t.Helper()
	class := a.NodeClass()
	spec := asMap(a.t, class.Spec)
	ids := strings.NewReplacer("${OWN_A}", ec2sim.ImageID("own-a"), "${OWN_B}", ec2sim.ImageID("own-b"), "${RESERVATION}", a.reservation, "${PLACEMENT_GROUP}", a.group)
	for _, specification := range specifications {
		var over map[string]any
		if err := yaml.Unmarshal([]byte(ids.Replace(specification)), &over); err != nil {
			a.t.Fatal(err)
		}
		maps.Copy(spec, over)
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		a.t.Fatal(err)
	}
	class.Spec = awsv1.EC2NodeClassSpec{}
	if err := yaml.UnmarshalStrict(text, &class.Spec); err != nil {
		a.t.Fatal(err)
	}
	a.classes++
	class.Name = fmt.Sprintf("class-%d", a.classes)
	class.UID = types.UID(fmt.Sprintf("0b2a7a4e-0000-4000-8000-%012d", a.classes))
	return class
}

func asMap(t testing.TB, value any) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// changedFields returns the fields in which two specifications differ, as the table writes their paths.
func changedFields(t *testing.T, from, to awsv1.EC2NodeClassSpec) []string {
	t.Helper()
	before, err := oracle.SetFields(asMap(t, from))
	if err != nil {
		t.Fatal(err)
	}
	after, err := oracle.SetFields(asMap(t, to))
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, paths := range []map[string]map[string]string{before, after} {
		for path := range paths {
			if !maps.Equal(before[path], after[path]) {
				changed = append(changed, path)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// play launches an instance of a class and returns what EC2 and IAM got, what EC2
// says about the instance, and the size that is planned with.
func (a *rowAccount) play(class *awsv1.EC2NodeClass, instanceType string) map[string][]oracle.Document {
	a.t.Helper()
	if instanceType == "" {
		instanceType = "m5.large"
	}
	a.sim.KeepParameters(oracle.Actions...)
	before := len(a.sim.Calls(""))
	a.resolve(a.provider, class)
	if !class.IsTrue("Ready") {
		a.t.Fatalf("the class is not ready: %+v", class.Status.Conditions)
	}
	kind := a.typeOf(class, instanceType)
	request, err := a.provider.PrepareLaunch(a.t.Context(), specOf(a.t, class, kind))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Token = string(class.UID)
	result, err := a.provider.Launch(a.t.Context(), request)
	if err != nil {
		a.t.Fatal(err)
	}
	documents := oracle.Canonical(a.sim.Calls("")[before:])
	maps.DeleteFunc(documents, func(action string, _ []oracle.Document) bool { return oracle.ForValidation(action) })
	answer, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{result.Instances[0].ID}})
	if err != nil {
		a.t.Fatal(err)
	}
	described, err := oracle.Described(answer.Reservations[0].Instances[0])
	if err != nil {
		a.t.Fatal(err)
	}
	for path, value := range described {
		if eachTime.MatchString(path) {
			delete(described, path)
			continue
		}
		described[path] = strings.ReplaceAll(madeUp.ReplaceAllString(value, "<made>"), class.Name, "<class>")
	}
	for _, document := range slices.Concat(slices.Collect(maps.Values(documents))...) {
		for path, value := range document {
			document[path] = strings.ReplaceAll(value, class.Name, "<class>")
		}
		// Canonical names the template of an override by the image, which is the template's.
		maps.DeleteFunc(document, func(path, _ string) bool {
			return strings.HasPrefix(path, "Overrides[") && strings.HasSuffix(path, "].Template")
		})
	}
	size := oracle.Document{}
	for name, quantity := range kind.Capacity {
		size["capacity."+string(name)] = quantity.String()
	}
	for name, quantity := range kind.Allocatable {
		size["allocatable."+string(name)] = quantity.String()
	}
	documents["DescribeInstances"], documents[oracle.Planned] = []oracle.Document{described}, []oracle.Document{size}
	return documents
}

// eachTime are the paths of values that differ from one launch to the next, and madeUp are ids and addresses in values.
var (
	eachTime = regexp.MustCompile(`(^|\.)(AmiLaunchIndex|AttachTime|ClientToken|Id|LaunchTime)$|\[aws:ec2:fleet-id\]$`)
	madeUp   = regexp.MustCompile(`\b(i|r|eni|eni-attach|vol|cr|fleet|lt|sir)-[0-9a-f]{8,17}\b|\b[0-9]{1,3}([.-][0-9]{1,3}){3}\b|instance-profile/karpenter/.*`)
)

// specOf returns the launch of one instance in the first zone, in a reservation if the class selects one.
func specOf(t testing.TB, class *awsv1.EC2NodeClass, kind *cloud.InstanceType) cloud.LaunchSpec {
	t.Helper()
	for _, capacityType := range []string{"reserved", "on-demand"} {
		for _, offer := range kind.Offerings {
			if offer.CapacityType == capacityType && offer.Available {
				return cloud.LaunchSpec{
					Group: "group", Count: 1, Class: class, NodePool: "default", CapacityType: capacityType,
					Offerings: []cloud.OfferingKey{{InstanceType: kind.Name, Zone: offer.Zone, CapacityType: capacityType, ReservationID: offer.ReservationID}},
				}
			}
		}
	}
	t.Fatalf("%s cannot be bought: %+v", kind.Name, kind.Offerings)
	return cloud.LaunchSpec{}
}
