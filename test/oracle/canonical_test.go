package oracle

import (
	"encoding/base64"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// template is a recorded CreateLaunchTemplate, shortened, with changes.
func template(changes map[string]string) ec2sim.Call {
	parameters := map[string]string{
		"Action": "CreateLaunchTemplate", "Version": "2016-11-15", "ClientToken": "b5f4", "LaunchTemplateName": "karpenter.k8s.aws/1234",
		"LaunchTemplateData.ImageId":                              "ami-1",
		"LaunchTemplateData.IamInstanceProfile.Name":              "tenon-dev_7665975207642366603",
		"LaunchTemplateData.NetworkInterface.1.DeviceIndex":       "0",
		"LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1": "sg-b",
		"LaunchTemplateData.NetworkInterface.1.SecurityGroupId.2": "sg-a",
		"LaunchTemplateData.BlockDeviceMapping.1.DeviceName":      "/dev/xvda",
		"LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize":  "20",
		"TagSpecification.1.ResourceType":                         "launch-template",
		"TagSpecification.1.Tag.1.Key":                            "karpenter.sh/nodepool",
		"TagSpecification.1.Tag.1.Value":                          "default",
	}
	maps.Copy(parameters, changes)
	return ec2sim.Call{Action: "CreateLaunchTemplate", Parameters: parameters}
}

// TestCanonical: what must differ is gone, and everything else is there.
func TestCanonical(t *testing.T) {
	t.Parallel()
	got := Canonical([]ec2sim.Call{template(nil)})["CreateLaunchTemplate"]
	want := []Document{{
		"LaunchTemplateData.ImageId":                                      "ami-1",
		"LaunchTemplateData.IamInstanceProfile.Name":                      "<profile>",
		"LaunchTemplateData.NetworkInterface[0/0].SecurityGroupId":        "sg-a sg-b",
		"LaunchTemplateData.BlockDeviceMapping[/dev/xvda].Ebs.VolumeSize": "20",
		"TagSpecification[launch-template].Tag[karpenter.sh/nodepool]":    "default",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAlike compares a template with a changed one.
func TestAlike(t *testing.T) {
	t.Parallel()
	for reason, row := range map[string]struct {
		changes map[string]string
		paths   []string
	}{
		"a name, a token and a profile are made up": {map[string]string{
			"LaunchTemplateName": "tenon.sh/ff", "ClientToken": "c", "LaunchTemplateData.IamInstanceProfile.Name": "tenon-dev_06e194773f31be96",
		}, nil},
		"the order of groups does not matter": {map[string]string{
			"LaunchTemplateData.NetworkInterface.1.SecurityGroupId.1": "sg-a", "LaunchTemplateData.NetworkInterface.1.SecurityGroupId.2": "sg-b",
		}, nil},
		"another image": {map[string]string{"LaunchTemplateData.ImageId": "ami-2"}, []string{"LaunchTemplateData.ImageId"}},
		"another size":  {map[string]string{"LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize": "21"}, []string{"LaunchTemplateData.BlockDeviceMapping[/dev/xvda].Ebs.VolumeSize"}},
		"one more tag": {map[string]string{"TagSpecification.1.Tag.2.Key": "a", "TagSpecification.1.Tag.2.Value": "b"},
			[]string{"TagSpecification[launch-template].Tag[a]"}},
		"a template for a dry run is compared with others of that kind": {map[string]string{"TagSpecification.1.Tag.1.Value": ""}, []string{wholeCall, wholeCall}},
	} {
		var paths []string
		for _, difference := range Compare("case", Canonical([]ec2sim.Call{template(nil)}), Canonical([]ec2sim.Call{template(row.changes)})) {
			paths = append(paths, difference.Path)
		}
		if diff := cmp.Diff(row.paths, paths); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}

// TestFleetsNameTemplatesByContent: how overrides are grouped under templates does not matter; which image they get does.
func TestFleetsNameTemplatesByContent(t *testing.T) {
	t.Parallel()
	fleet := func(name string) ec2sim.Call {
		return ec2sim.Call{Action: "CreateFleet", Parameters: map[string]string{
			"LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName": name,
			"LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version":            "$Latest",
			"LaunchTemplateConfigs.1.Overrides.1.InstanceType":                       "m5.large",
			"LaunchTemplateConfigs.1.Overrides.1.SubnetId":                           "subnet-1",
		}}
	}
	named := template(map[string]string{"LaunchTemplateName": "one", "LaunchTemplateData.ImageId": "ami-7"})
	got := Canonical([]ec2sim.Call{fleet("one"), named})["CreateFleet"]
	want := []Document{{"Overrides[m5.large/subnet-1].Template": "ami-7", "Overrides[m5.large/subnet-1].Version": "$Latest"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUserData: in an archive, the NodeConfig is compared by value and scripts by text.
func TestUserData(t *testing.T) {
	t.Parallel()
	archive := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\necho hi\n\n" +
		"--//\nContent-Type: application/node.eks.aws\n\nspec:\n  kubelet:\n    config: {maxPods: 8}\n    flags: ['--node-labels=b=1,a=2']\n--//--\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(archive))
	document := reduce(template(map[string]string{"LaunchTemplateData.UserData": encoded}), nil)
	for path, want := range map[string]string{
		"UserData[text/x-shellscript 0]":                                            "echo hi",
		"UserData[application/node.eks.aws 0].spec.kubelet.config.maxPods":          "8",
		"UserData[application/node.eks.aws 0].spec.kubelet.flags[--node-labels][a]": "2",
		"UserData[application/node.eks.aws 0].spec.kubelet.flags[--node-labels][b]": "1",
	} {
		if document[path] != want {
			t.Errorf("%s is %q, want %q", path, document[path], want)
		}
	}
	if _, there := document["LaunchTemplateData.UserData"]; there {
		t.Error("the encoded user data is compared as well")
	}
}

// TestGroupsOfTheInstance checks that an instance's security groups become those of its only interface.
func TestGroupsOfTheInstance(t *testing.T) {
	t.Parallel()
	call := ec2sim.Call{Action: "CreateLaunchTemplate", Parameters: map[string]string{"LaunchTemplateData.SecurityGroupId.1": "sg-a"}}
	if diff := cmp.Diff(Document{"LaunchTemplateData.NetworkInterface[0/0].SecurityGroupId": "sg-a"}, reduce(call, nil)); diff != "" {
		t.Error(diff)
	}
}

// TestJudge: a difference without a row, and a row without a difference, are reported.
func TestJudge(t *testing.T) {
	t.Parallel()
	found := []Difference{{"c", "CreateFleet", "Context", "x", absent}, {"c", "CreateFleet", "Type", "x", "y"}}
	list := []Allowed{{Action: "Create.*", Path: "Context", Reason: "r"}, {Path: "Typ", Reason: "patterns match the whole path"}}
	unlisted, stale := Judge(found, list)
	if diff := cmp.Diff([]Difference{found[1]}, unlisted); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Allowed{list[1]}, stale); diff != "" {
		t.Error(diff)
	}
}

// TestDifferencesHaveReasons: the list stays short, and every row says why.
func TestDifferencesHaveReasons(t *testing.T) {
	t.Parallel()
	if len(Differences) > maxDifferences {
		t.Errorf("%d rows, at most %d", len(Differences), maxDifferences)
	}
	for _, allowed := range Differences {
		if allowed.Reason == "" || allowed.Path == "" {
			t.Errorf("a row without a reason or a path: %+v", allowed)
		}
	}
}
