package nodegroup_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/nodegroup"
)

// silent are fields of AWS's types that may be set or not without any effect or note, with the reason. Names are those of the
// SDK; what is below them is silent too.
var silent = map[string]string{
	"Nodegroup.UpdateConfig.MaxUnavailablePercentage":   "it excludes MaxUnavailable (TestManaged)",
	"Nodegroup.CreatedAt":                               "it is about the group",
	"Nodegroup.ModifiedAt":                              "it is about the group",
	"Nodegroup.NodegroupArn":                            "it repeats the names of cluster and group",
	"Nodegroup.Status":                                  "it is about the group",
	"Nodegroup.ScalingConfig.DesiredSize":               "Tenon counts pods",
	"Nodegroup.Resources.AutoScalingGroups":             "their tags are read beside it",
	"Nodegroup.LaunchTemplate":                          "what it names is read beside it",
	"Nodegroup.Health.Issues.ResourceIds":               "the message of the issue names them",
	"Nodegroup.WarmPoolConfig.MaxGroupPreparedCapacity": "there are no warm pools, which a note says",
	"Nodegroup.WarmPoolConfig.MinSize":                  "likewise",
	"Nodegroup.WarmPoolConfig.PoolState":                "likewise",
	"Nodegroup.WarmPoolConfig.ReuseOnScaleIn":           "likewise",

	"ResponseLaunchTemplateData.EbsOptimized":                                          "every type of the current generation is",
	"ResponseLaunchTemplateData.Operator":                                              "it says who may change the template",
	"ResponseLaunchTemplateData.NetworkInterfaces.DeviceIndex":                         "without interfaces of its own a class has the first one",
	"ResponseLaunchTemplateData.NetworkInterfaces.NetworkCardIndex":                    "likewise",
	"ResponseLaunchTemplateData.Placement.GroupName":                                   "the id names the same group",
	"AutoScalingGroup.LaunchTemplate":                                                  "what it names is read beside it",
	"AutoScalingGroup.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification": "likewise",
	"AutoScalingGroup.LaunchConfigurationName":                                         "a group has either this or a launch template, and is left out with this (TestSelfManaged)",
	"AutoScalingGroup.AutoScalingGroupARN":                                             "it repeats the name",
	"AutoScalingGroup.AvailabilityZones":                                               "they are those of the subnets",
	"AutoScalingGroup.AvailabilityZoneIds":                                             "they are those of the subnets",
	"AutoScalingGroup.CreatedTime":                                                     "it is about the group",
	"AutoScalingGroup.Status":                                                          "it is about the group",
	"AutoScalingGroup.Instances":                                                       "they are drained when the group is scaled to zero",
	"AutoScalingGroup.Operator":                                                        "it is about the group",
	"AutoScalingGroup.ServiceLinkedRoleARN":                                            "it is about the group",
	"AutoScalingGroup.EnabledMetrics":                                                  "it is about the group",
	"AutoScalingGroup.PredictedCapacity":                                               "it is about the group",
	"AutoScalingGroup.DeletionProtection":                                              "it is about the group",
	"AutoScalingGroup.DesiredCapacity":                                                 "Tenon counts pods",
	"AutoScalingGroup.DesiredCapacityType":                                             "Tenon counts pods",
	"AutoScalingGroup.DefaultCooldown":                                                 "it is how the group scales",
	"AutoScalingGroup.DefaultInstanceWarmup":                                           "it is how the group scales",
	"AutoScalingGroup.HealthCheckGracePeriod":                                          "it is how the group scales",
	"AutoScalingGroup.HealthCheckType":                                                 "it is how the group scales",
	"AutoScalingGroup.SuspendedProcesses":                                              "it is how the group scales",
	"AutoScalingGroup.TerminationPolicies":                                             "it is how the group scales",
	"AutoScalingGroup.WarmPoolSize":                                                    "WarmPoolConfiguration has a note",
	"AutoScalingGroup.AvailabilityZoneDistribution":                                    "it is how the group scales",
	"AutoScalingGroup.AvailabilityZoneImpairmentPolicy":                                "it is how the group scales",
	"AutoScalingGroup.Tags.ResourceId":                                                 "it repeats the name of the group",
	"AutoScalingGroup.Tags.ResourceType":                                               "it is always a group",

	"ResponseLaunchTemplateData.MetadataOptions.State": "it says how far a change is",
}

// TestNoFieldIsLostInSilence takes each field of what AWS describes away from groups that have them all. What comes out, or what
// is said, has to be different. The SDK's types say which fields there are.
func TestNoFieldIsLostInSilence(t *testing.T) {
	t.Parallel()
	for _, root := range []struct {
		name string
		of   func(*nodegroup.Source) any
		base func() nodegroup.Source
	}{
		{"Nodegroup", func(s *nodegroup.Source) any { return s.Groups[0].Managed }, func() nodegroup.Source { return withEverything(false) }},
		{"ResponseLaunchTemplateData", func(s *nodegroup.Source) any { return s.Groups[0].Template }, func() nodegroup.Source { return withEverything(true) }},
		{"AutoScalingGroup", func(s *nodegroup.Source) any { return s.Groups[0].Scaling }, scalingWithEverything},
		{"InstanceRequirements", func(s *nodegroup.Source) any { return s.Groups[0].Template.InstanceRequirements }, attributesWithEverything},
	} {
		whole := base(t, root.base())
		checked := 0
		for _, path := range paths(reflect.TypeOf(root.of(ptr(root.base()))).Elem(), nil) {
			name := root.name + "." + strings.Join(path, ".")
			source := root.base()
			if !cleared(reflect.ValueOf(root.of(&source)).Elem(), path) {
				t.Errorf("%s: the group that is to have every field does not have it", name)
				continue
			}
			checked++
			if lostWhole(nodegroup.Propose(root.base())[0].Notes, path) {
				continue
			}
			less := base(t, source)
			if changes := whole != less; changes == isSilent(name) {
				t.Errorf("%s: taking it away changes something or is said: %v; want %v", name, changes, !changes)
			}
		}
		if checked < 20 {
			t.Errorf("%s: only %d fields were checked", root.name, checked)
		}
	}
}

// listIndexes matches what notes say of the place in a list.
var listIndexes = regexp.MustCompile(`\[[^]]*\]`)

// lostWhole reports whether something that a field is part of is noted as a whole to be lost.
func lostWhole(notes []convert.Note, path []string) bool {
	for _, note := range notes {
		field := strings.ToLower(listIndexes.ReplaceAllString(note.Field, ""))
		for n := 1; n < len(path); n++ {
			if above := strings.ToLower(strings.Join(path[:n], ".")); note.Effect == convert.Lost && (field == above || strings.HasSuffix(field, "."+above)) {
				return true
			}
		}
	}
	return false
}

func isSilent(name string) bool {
	for prefix := range silent {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			return true
		}
	}
	return false
}

func ptr[T any](v T) *T { return &v }

// base returns the manifests and notes for a source as text.
func base(t *testing.T, source nodegroup.Source) string {
	t.Helper()
	text, err := json.MarshalIndent(nodegroup.Propose(source), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// paths returns the names of all fields of a type, and of those within them.
func paths(of reflect.Type, above []string) [][]string {
	var all [][]string
	for i := range of.NumField() {
		field := of.Field(i)
		if !field.IsExported() {
			continue
		}
		path := append(append([]string{}, above...), field.Name)
		all = append(all, path)
		below := field.Type
		for below.Kind() == reflect.Pointer || below.Kind() == reflect.Slice {
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct && below.PkgPath() != "time" && len(path) < 4 {
			all = append(all, paths(below, path)...)
		}
	}
	return all
}

// clear empties the field at a path, in the first item of a list, and reports whether there was anything.
func cleared(v reflect.Value, path []string) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice {
		if v.Kind() == reflect.Slice {
			if v.Len() == 0 {
				return false
			}
			v = v.Index(0)
			continue
		}
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	field := v.FieldByName(path[0])
	if len(path) > 1 {
		return cleared(field, path[1:])
	}
	if field.IsZero() {
		return false
	}
	field.SetZero()
	return true
}

// fill sets everything below a value that is not set, to something that is no default.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		} else if v.Elem().Kind() == reflect.Struct {
			fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().PkgPath() != "time" {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.Len() == 0 {
			v.Set(reflect.ValueOf(map[string]string{"team": "shop"}))
		}
	case reflect.String:
		if v.Len() == 0 {
			v.SetString("something")
			if method, ok := v.Type().MethodByName("Values"); ok {
				v.SetString(method.Func.Call([]reflect.Value{v})[0].Index(0).String())
			}
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		if v.Float() == 0 {
			v.SetFloat(7)
		}
	case reflect.Int32, reflect.Int64:
		if v.Int() == 0 {
			v.SetInt(7)
		}
	}
}

// withEverything returns a group in which every field of AWS's types is set. A group with a launch template has its image, its
// disks and its types from there.
func withEverything(template bool) nodegroup.Source {
	group := managed("web")
	group.ScalingConfig.MinSize, group.Version = aws.Int32(1), aws.String("1.35")
	group.NodeRole = aws.String("arn:aws:iam::123456789012:role/path/nodes")
	group.Taints = []ekstypes.Taint{{Key: aws.String("team"), Value: aws.String("shop"), Effect: ekstypes.TaintEffectNoExecute}}
	group.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailablePercentage: aws.Int32(33), MaxUnavailable: aws.Int32(3)}
	group.CapacityType = ekstypes.CapacityTypesSpot
	group.Resources = &ekstypes.NodegroupResources{RemoteAccessSecurityGroup: aws.String("sg-0a")}
	group.Tags = map[string]string{"cost": "shop"}
	fill(reflect.ValueOf(group))
	source := sourceOf(nodegroup.Group{Managed: group})
	if !template {
		return source
	}
	group.AmiType, group.InstanceTypes = ekstypes.AMITypesCustom, nil
	t := &ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-0a"), InstanceType: "m5.large", UserData: encoded(nodeConfigText),
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMapping{{DeviceName: aws.String("/dev/xvda")}},
		Placement:           &ec2types.LaunchTemplatePlacement{Tenancy: ec2types.TenancyDedicated},
		CapacityReservationSpecification: &ec2types.LaunchTemplateCapacityReservationSpecificationResponse{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone},
		MetadataOptions:   &ec2types.LaunchTemplateInstanceMetadataOptions{HttpEndpoint: "disabled", HttpTokens: "optional", HttpProtocolIpv6: "enabled"},
		NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecification{{Groups: []string{"sg-0b"}, InterfaceType: aws.String("efa")}},
		TagSpecifications: []ec2types.LaunchTemplateTagSpecification{{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("team"), Value: aws.String("shop")}}}},
	}
	fill(reflect.ValueOf(t))
	source.Groups[0].Template = t
	return source
}

// scalingWithEverything returns a group that EKS does not manage, in which every field is set.
func scalingWithEverything() nodegroup.Source {
	group := selfManaged("own")
	group.Scaling.MixedInstancesPolicy = &astypes.MixedInstancesPolicy{
		LaunchTemplate:        &astypes.LaunchTemplate{Overrides: []astypes.LaunchTemplateOverrides{{InstanceType: aws.String("m5.large")}}},
		InstancesDistribution: &astypes.InstancesDistribution{OnDemandPercentageAboveBaseCapacity: aws.Int32(50)},
	}
	group.Scaling.MinSize = aws.Int32(1)
	group.Scaling.PlacementGroup = aws.String("group")
	fill(reflect.ValueOf(group.Scaling))
	return sourceOf(group)
}

// attributesWithEverything returns a group that chooses its instance types by every attribute that there is.
func attributesWithEverything() nodegroup.Source {
	group := selfManaged("own")
	group.Template.InstanceType = ""
	group.Template.InstanceRequirements = &ec2types.InstanceRequirements{
		BareMetal: ec2types.BareMetalRequired, BurstablePerformance: ec2types.BurstablePerformanceRequired, LocalStorage: ec2types.LocalStorageRequired,
		AllowedInstanceTypes: []string{"m5.*"}, ExcludedInstanceTypes: []string{"m5.metal"}, AcceleratorTypes: []ec2types.AcceleratorType{ec2types.AcceleratorTypeGpu},
		VCpuCount: &ec2types.VCpuCountRange{Min: aws.Int32(2), Max: aws.Int32(16)}, MemoryMiB: &ec2types.MemoryMiB{Min: aws.Int32(4096), Max: aws.Int32(65536)},
	}
	fill(reflect.ValueOf(group.Template.InstanceRequirements))
	return sourceOf(group)
}
