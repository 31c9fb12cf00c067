package clients

import (
	"crypto/md5" // SQS defines its checksums as MD5
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/catalogue"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// newer lists what the answers contain and the model of Debian 12's botocore (1.29, December 2022) does not have yet. The
// AWS SDK for Go that this module builds with has all of it.
var newer = map[string]string{
	"ec2.CreateFleet.Instances[]: has an unknown availabilityZone":                                                 "2026",
	"ec2.CreateFleet.Instances[]: has an unknown availabilityZoneId":                                               "2026",
	"ec2.CreateFleet.Instances[]: has an unknown subnetId":                                                         "2026",
	"ec2.DescribeCapacityReservations.CapacityReservations[]: has an unknown interruptible":                        "interruptible reservations, 2025",
	"ec2.DescribeCapacityReservations.CapacityReservations[]: has an unknown reservationType":                      "capacity blocks, 2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].InferenceAcceleratorInfo: has an unknown totalInferenceMemoryInMiB": "2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].InferenceAcceleratorInfo.Accelerators[]: has an unknown memoryInfo": "2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].NetworkInfo.NetworkCards[]: has an unknown baselineBandwidthInGbps": "2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].NetworkInfo.NetworkCards[]: has an unknown peakBandwidthInGbps":     "2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].ProcessorInfo: has an unknown manufacturer":                         "2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].ProcessorInfo: has an unknown supportedFeatures":                    "AMD SEV-SNP, 2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[].SupportedUsageClasses[]: 'capacity-block' is not one of its values": "capacity blocks, 2023",
	"ec2.DescribeInstanceTypes.InstanceTypes[]: has an unknown neuronInfo":                                         "2024",
	"ec2.DescribeInstanceTypes.InstanceTypes[]: has an unknown nitroEnclavesSupport":                               "2023",
	"ec2.DescribeInstances.Reservations[].Instances[].Placement: has an unknown availabilityZoneId":                "zone ids beside names, 2025",
	"ec2.RunInstances.Instances[].Placement: has an unknown availabilityZoneId":                                    "zone ids beside names, 2025",
	"ec2.DescribeSpotPriceHistory.SpotPriceHistory[]: has an unknown availabilityZoneId":                           "zone ids beside names, 2025",
	"ec2.DescribeImages.Images[].BootMode: 'uefi-preferred' is not one of its values":                              "2023",
	"eks.CreateNodegroup.nodegroup.amiType: 'AL2023_x86_64_STANDARD' is not one of its values":                     "2023",
	"eks.DescribeNodegroup.nodegroup.amiType: 'AL2023_x86_64_STANDARD' is not one of its values":                   "2023",
	"ec2.DescribeSecurityGroups.SecurityGroups[]: has an unknown securityGroupArn":                                 "2024",
}

// seen is what boto.py prints: the answers as boto3 parsed them, under boto3's names.
type seen struct {
	Strict struct {
		Answers    int
		Complaints []string
	}

	NodeGroups struct {
		Listed, Overrides     []string
		Update, Effect, Again string
		Most                  int
		Scaling               bool
	}

	TypePages       int
	Types           map[string]botoType
	ArmMetal        []string
	Offerings       []string
	Image           struct{ Name, Type, Value, DataType string }
	ImageParameters []string
	SomeParameters  struct{ Found, Invalid []string }
	Images          []struct {
		ImageID                                       string `json:"ImageId"`
		Architecture, State, Name, RootDeviceName     string
		BootMode, VirtualizationType, ImageOwnerAlias string
		CreationDate                                  time.Time
		EnaSupport                                    bool
	}
	Subnets, Zones  map[string]string
	Groups, Vpcs    []string
	PlacementGroups []any
	PricePages      int
	SpotPrices      []spotPrice
	Cluster         struct {
		Name, Arn, Version, Endpoint, Status string
		CertificateAuthority                 struct{ Data []byte }
		KubernetesNetworkConfig              struct{ ServiceIpv4Cidr string }
	}
	OnDemand []float64
	Caller   struct{ Account, Arn string }

	ProfileMissing, ProfileTwice, ProfileInUse, ProfileEnded, ProfileID, Role string
	Profile                                                                   struct {
		Path, InstanceProfileName, InstanceProfileID, Arn string
		CreateDate                                        time.Time
		Roles                                             []struct{ RoleName string }
		Tags                                              []tag
	}
	ProfilesListed []string

	Template struct {
		Made     template
		Listed   []template
		Versions []struct {
			LaunchTemplateID   string `json:"LaunchTemplateId"`
			VersionDescription string
			DefaultVersion     bool
			LaunchTemplateData struct {
				ImageID, UserData string
				SecurityGroupIDs  []string `json:"SecurityGroupIds"`
				MetadataOptions   map[string]any
			}
		}
	}
	Partial, Replayed, Spot botoFleet
	Instances               map[string]botoInstance
	InstancePages           int
	Tags, TagsLeft          []tag
	Status                  map[string]string
	SpotRequests            []string
	DryRun                  string
	Ran                     struct {
		ReservationID string `json:"ReservationId"`
		Instances     []botoInstance
	}
	Reservations struct {
		ID   string
		Seen []struct {
			CapacityReservationID, InstanceType, State string
			TotalInstanceCount, AvailableInstanceCount int
			Tags                                       []tag
		}
	}

	SQSJSON, SQSQuery botoQueue

	Event struct {
		Source     string
		DetailType string `json:"detail-type"`
		Detail     map[string]string
		Resources  []string
		Time       time.Time
	}
	Reclaimed struct {
		State  state
		Reason string
	}
	Terminating     map[string][2]string
	Ended           struct{ Reason, Transition string }
	TemplateDeleted string
	Errors          map[string]string
}

type (
	tag   struct{ Key, Value string }
	state struct {
		Code int
		Name string
	}
	template struct {
		LaunchTemplateID, LaunchTemplateName, CreatedBy string
		CreateTime                                      time.Time
		LatestVersionNumber                             int
		Tags                                            []tag
	}
	spotPrice struct {
		Type, Zone string
		Price      float64
	}
	botoType struct {
		BareMetal                bool
		ProcessorInfo            struct{ SupportedArchitectures []string }
		VCPUInfo                 struct{ DefaultVCpus int }
		MemoryInfo               struct{ SizeInMiB int64 }
		NetworkInfo              struct{ MaximumNetworkInterfaces int }
		GPUInfo                  struct{ Gpus []struct{ Count int } }
		InferenceAcceleratorInfo struct{ Accelerators []struct{ Count int } }
		InstanceStorageInfo      struct{ TotalSizeInGB int64 }
	}
	botoFleet struct {
		FleetID string `json:"FleetId"`
		Errors  []struct {
			ErrorCode, Lifecycle       string
			LaunchTemplateAndOverrides struct {
				Overrides struct{ InstanceType, SubnetID string }
			}
		}
		Instances []struct {
			InstanceIDs             []string `json:"InstanceIds"`
			InstanceType, Lifecycle string
		}
	}
	botoInstance struct {
		InstanceID, InstanceType, InstanceLifecycle, ClientToken, PrivateDNSName string
		LaunchTime                                                               time.Time
		Placement                                                                struct{ AvailabilityZone string }
		State                                                                    state
		Tags                                                                     []tag
	}
	botoQueue struct {
		Protocol, Missing, URL, Text, SentMD5, TooMany, EmptyBatch string
		Received                                                   []struct {
			Body, MD5OfBody string
			Attributes      map[string]string
		}
		Attributes map[string]string
		Deleted    []string
		Failed     []any
		Left       []any
	}
)

// ids returns the instances of a fleet.
func (f botoFleet) ids() []string {
	var ids []string
	for _, i := range f.Instances {
		ids = append(ids, i.InstanceIDs...)
	}
	slices.Sort(ids)
	return ids
}

func byKey(tags []tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[t.Key] = t.Value
	}
	return m
}

// TestBoto3 runs boto.py once, and compares what boto3 saw with the account.
func TestBoto3(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{PendingFor: 300 * time.Millisecond, ShuttingDownFor: 300 * time.Millisecond})
	stdout, stderr, exit := run(t, "nobody", python, "boto.py", a.sim.URL(), cluster)
	if strings.Contains(stderr, "No module named 'boto3'") {
		t.Fatal("boto3 is missing: run tools/awscli.sh, or on Debian: apt-get install -y awscli python3-boto3")
	}
	if exit != 0 {
		t.Fatalf("boto.py ended with %d:\n%s", exit, stderr)
	}
	var s seen
	if err := json.Unmarshal(stdout, &s); err != nil {
		t.Fatalf("boto.py printed %.200s: %v", stdout, err)
	}
	t.Run("answers have what their models say", func(t *testing.T) {
		if s.Strict.Answers < 80 {
			t.Errorf("only %d answers were looked at", s.Strict.Answers)
		}
		for _, complaint := range s.Strict.Complaints {
			if newer[complaint] == "" {
				t.Error(complaint)
			}
		}
	})
	t.Run("instance types", s.types)
	t.Run("what is there", func(t *testing.T) { s.discovered(t, a) })
	t.Run("instance profiles", s.profiles)
	t.Run("launches", func(t *testing.T) { s.launches(t, a) })
	t.Run("SQS's JSON protocol", func(t *testing.T) { s.SQSJSON.check(t, a, "json") })
	t.Run("SQS's query protocol", func(t *testing.T) { s.SQSQuery.check(t, a, "query") })
	t.Run("interruption and end", func(t *testing.T) { s.ends(t, a) })
	t.Run("node groups", s.nodeGroups)
	t.Run("errors", s.errors)
}

// nodeGroups checks two managed node groups, of which one may grow to five nodes after an update, and one of somebody's own.
func (s seen) nodeGroups(t *testing.T) {
	g := s.NodeGroups
	if diff := cmp.Diff([]string{"batch", "web"}, g.Listed) + cmp.Diff([]string{"m5.large", "c5.large"}, g.Overrides); diff != "" {
		t.Errorf("groups and overrides (-want +got):\n%s", diff)
	}
	if g.Update != "ConfigUpdate" || g.Effect != "NO_SCHEDULE" || g.Most != 5 || !g.Scaling || g.Again != "ResourceInUseException 409" {
		t.Errorf("node groups are %+v", g)
	}
}

func (s seen) types(t *testing.T) {
	sold, err := catalogue.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	all := sold.Types()
	if want := (len(all) + 99) / 100; s.TypePages != want || len(s.Types) != len(all) {
		t.Errorf("%d types on %d pages of 100, want %d on %d", len(s.Types), s.TypePages, len(all), want)
	}
	var armMetal []string
	for _, want := range all {
		got := s.Types[want.Name]
		arch := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[want.Arch]
		gpus, accelerators := 0, 0
		for _, g := range got.GPUInfo.Gpus {
			gpus += g.Count
		}
		for _, d := range got.InferenceAcceleratorInfo.Accelerators {
			accelerators += d.Count
		}
		wantAccelerators := 0
		if strings.HasPrefix(want.NeuronName, "Inferentia") {
			wantAccelerators = want.Neurons
		}
		if !slices.Contains(got.ProcessorInfo.SupportedArchitectures, arch) || got.VCPUInfo.DefaultVCpus != want.VCPUs ||
			got.MemoryInfo.SizeInMiB != want.MemoryMiB || got.NetworkInfo.MaximumNetworkInterfaces != want.MaxENIs || gpus != want.GPUs ||
			accelerators != wantAccelerators || got.InstanceStorageInfo.TotalSizeInGB != want.NVMeGB+want.DiskGB || got.BareMetal != want.BareMetal {
			t.Errorf("%s is seen as %+v, and is %+v", want.Name, got, *want)
		}
		if want.Arch == "arm64" && want.BareMetal {
			armMetal = append(armMetal, want.Name)
		}
	}
	slices.Sort(armMetal)
	slices.Sort(s.ArmMetal)
	if diff := cmp.Diff(armMetal, s.ArmMetal); diff != "" {
		t.Errorf("types by filter (-want +got):\n%s", diff)
	}
	if want := []float64{sold.Type("m5.large").PriceUSD}; !slices.Equal(s.OnDemand, want) {
		t.Errorf("the price list has %v for m5.large, want %v", s.OnDemand, want)
	}
}

func (s seen) discovered(t *testing.T, a account) {
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	if got := slices.Sorted(slices.Values(s.Offerings)); !slices.Equal(got, zones) {
		t.Errorf("m5.large is offered in %v", got)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(s.Subnets)), zones) || !slices.Equal(slices.Sorted(maps.Keys(s.Zones)), zones) {
		t.Errorf("subnets %v of zones %v", s.Subnets, s.Zones)
	}
	if len(s.Groups) != 2 || len(s.Vpcs) != 1 || len(s.PlacementGroups) != 0 {
		t.Errorf("groups %v, VPCs %v, placement groups %v", s.Groups, s.Vpcs, s.PlacementGroups)
	}
	if len(s.Images) != 1 || s.Images[0].ImageID != s.Image.Value || s.Images[0].Architecture != "x86_64" || s.Images[0].State != "available" ||
		s.Images[0].CreationDate.IsZero() || !s.Images[0].EnaSupport || s.Images[0].ImageOwnerAlias != "amazon" {
		t.Errorf("the parameter %+v names the images %+v", s.Image, s.Images)
	}
	if n := len(s.ImageParameters); n <= 10 || !slices.Contains(s.ImageParameters, s.Image.Name) {
		t.Errorf("%d parameters by path, all pages of 5 together", n)
	}
	if !slices.Equal(s.SomeParameters.Found, []string{s.Image.Name}) || !slices.Equal(s.SomeParameters.Invalid, []string{"/none"}) {
		t.Errorf("parameters by name: %+v", s.SomeParameters)
	}
	if len(s.SpotPrices) != 6 || s.PricePages != 3 {
		t.Errorf("%d spot prices on %d pages of 2", len(s.SpotPrices), s.PricePages)
	}
	for _, id := range s.Spot.ids() {
		i := a.instances(t)[id]
		if !slices.Contains(s.SpotPrices, spotPrice{i.Type, i.Zone, i.PriceUSD}) {
			t.Errorf("a %s in %s costs %v, which is none of %v", i.Type, i.Zone, i.PriceUSD, s.SpotPrices)
		}
	}
	if c := s.Cluster; c.Name != cluster || c.Status != "ACTIVE" || c.Endpoint != "https://api.blue.example" || c.KubernetesNetworkConfig.ServiceIpv4Cidr == "" ||
		string(c.CertificateAuthority.Data) != "the authority's certificate" {
		t.Errorf("the cluster is %+v", c)
	}
	if s.Caller.Account == "" || !strings.Contains(s.Caller.Arn, s.Caller.Account) {
		t.Errorf("the caller is %+v", s.Caller)
	}
}

func (s seen) profiles(t *testing.T) {
	if got := []string{s.ProfileMissing, s.ProfileTwice, s.ProfileInUse, s.ProfileEnded}; !slices.Equal(got,
		[]string{"NoSuchEntity 404", "EntityAlreadyExists 409", "DeleteConflict 409", "NoSuchEntity 404"}) {
		t.Errorf("refusals: %v", got)
	}
	p := s.Profile
	if p.Path != "/tenon/" || p.InstanceProfileID != s.ProfileID || !strings.HasSuffix(p.Arn, ":instance-profile/tenon/clients") || p.CreateDate.IsZero() ||
		len(p.Roles) != 1 || p.Roles[0].RoleName != "node" || !strings.HasSuffix(s.Role, ":role/node") {
		t.Errorf("the profile is %+v, its role %s", p, s.Role)
	}
	if diff := cmp.Diff(map[string]string{"cluster": cluster, "more": "x"}, byKey(p.Tags)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if !slices.Equal(s.ProfilesListed, []string{"clients"}) {
		t.Errorf("profiles listed: %v", s.ProfilesListed)
	}
}

func (s seen) launches(t *testing.T, a account) {
	made := s.Template.Made
	if len(s.Template.Listed) != 1 || len(s.Template.Versions) != 1 {
		t.Fatalf("templates %+v", s.Template)
	}
	if diff := cmp.Diff(made, s.Template.Listed[0]); diff != "" {
		t.Errorf("the template, made and listed:\n%s", diff)
	}
	v := s.Template.Versions[0]
	if v.LaunchTemplateID != made.LaunchTemplateID || !v.DefaultVersion || v.VersionDescription != "first" || v.LaunchTemplateData.ImageID != s.Image.Value ||
		v.LaunchTemplateData.UserData != "I2Nsb3VkLWNvbmZpZwo=" || !slices.Equal(v.LaunchTemplateData.SecurityGroupIDs, s.Groups) {
		t.Errorf("the template's version is %+v", v)
	}
	if diff := cmp.Diff(map[string]any{"HttpTokens": "required", "HttpPutResponseHopLimit": 1.0}, v.LaunchTemplateData.MetadataOptions); diff != "" {
		t.Errorf("the template's metadata options (-want +got):\n%s", diff)
	}

	var partial, ran []string
	for id, truth := range a.instances(t) {
		switch truth.ClientToken {
		case "partial":
			partial = append(partial, id)
		case "ran":
			ran = append(ran, id)
			continue
		}
		got := s.Instances[id]
		lifecycle := map[string]string{"spot": "spot"}[truth.CapacityType]
		if got.InstanceType != truth.Type || got.Placement.AvailabilityZone != truth.Zone || got.InstanceLifecycle != lifecycle ||
			got.PrivateDNSName != truth.PrivateDNS || got.ClientToken != truth.ClientToken || got.State != (state{16, "running"}) ||
			!got.LaunchTime.Equal(truth.LaunchedAt.Truncate(time.Millisecond)) {
			t.Errorf("%s is seen as %+v, and is %+v", id, got, truth)
		}
		if diff := cmp.Diff(truth.Tags, byKey(got.Tags)); diff != "" {
			t.Errorf("tags of %s (-truth +seen):\n%s", id, diff)
		}
		if s.Status[id] != "ok" {
			t.Errorf("status of %s is %q", id, s.Status[id])
		}
	}
	slices.Sort(partial)
	if len(partial) != 7 || !slices.Equal(s.Partial.ids(), partial) || len(s.Partial.Errors) != 1 || s.Partial.Errors[0].ErrorCode != "InsufficientInstanceCapacity" ||
		s.Partial.Errors[0].LaunchTemplateAndOverrides.Overrides.InstanceType != "m5.large" {
		t.Errorf("nine instances were asked for with room for seven; the account has %v, and the fleet says %+v", partial, s.Partial)
	}
	if diff := cmp.Diff(s.Partial, s.Replayed); diff != "" {
		t.Errorf("the fleet's token, used again:\n%s", diff)
	}
	if len(s.Spot.ids()) != 1 || !slices.Equal(s.SpotRequests, s.Spot.ids()) {
		t.Errorf("spot fleet %+v, spot requests %v", s.Spot, s.SpotRequests)
	}
	if len(s.Instances) != 8 || s.InstancePages != 2 {
		t.Errorf("%d instances on %d pages of 5", len(s.Instances), s.InstancePages)
	}
	if len(ran) != 2 || len(s.Ran.Instances) != 2 || !strings.HasPrefix(s.Ran.ReservationID, "r-") {
		t.Errorf("two were run; the account has %v, and the answer %+v", ran, s.Ran)
	}
	if diff := cmp.Diff([]tag{{"Name", "<first> & 'only'"}}, s.Tags); diff != "" || len(s.TagsLeft) != 0 {
		t.Errorf("tags, and afterwards %v (-want +got):\n%s", s.TagsLeft, diff)
	}
	if s.DryRun != "DryRunOperation 412" {
		t.Errorf("a dry run said %s", s.DryRun)
	}
	if r := s.Reservations; len(r.Seen) != 1 || r.Seen[0].CapacityReservationID != r.ID || r.Seen[0].State != "active" || r.Seen[0].TotalInstanceCount != 3 ||
		byKey(r.Seen[0].Tags)["owner"] != "clients" {
		t.Errorf("reservations: %+v", r)
	}
}

func (q botoQueue) check(t *testing.T, a account, protocol string) {
	sum := md5.Sum([]byte(q.Text)) // SQS defines its checksums as MD5
	if want := hex.EncodeToString(sum[:]); q.SentMD5 != want || len(q.Received) != 2 || q.Received[0].Body != q.Text || q.Received[0].MD5OfBody != want {
		t.Fatalf("%q was sent, with checksum %s, and received as %+v", q.Text, q.SentMD5, q.Received)
	}
	if q.Protocol != protocol || !strings.HasPrefix(q.URL, a.sim.URL()) {
		t.Errorf("protocol %s, queue %s", q.Protocol, q.URL)
	}
	names := slices.Sorted(maps.Keys(q.Received[0].Attributes))
	if !slices.Equal(names, []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SentTimestamp"}) {
		t.Errorf("a message has %v", q.Received[0].Attributes)
	}
	if q.Attributes["ApproximateNumberOfMessagesNotVisible"] != "2" || !strings.HasSuffix(q.Attributes["QueueArn"], ":"+cluster) || len(q.Attributes) != 2 {
		t.Errorf("the queue has %v", q.Attributes)
	}
	if !slices.Equal(q.Deleted, []string{"two"}) || len(q.Failed) != 0 || len(q.Left) != 0 {
		t.Errorf("deleted %v, failed %v, left %v", q.Deleted, q.Failed, q.Left)
	}
	if got := []string{q.Missing, q.TooMany, q.EmptyBatch}; !slices.Equal(got, []string{
		"AWS.SimpleQueueService.NonExistentQueue 400", "InvalidParameterValue 400", "AWS.SimpleQueueService.EmptyBatchRequest 400",
	}) {
		t.Errorf("refusals: %v", got)
	}
}

func (s seen) ends(t *testing.T, a account) {
	spot := s.Spot.ids()
	truth := a.instances(t)
	if s.Event.Source != "aws.ec2" || s.Event.DetailType != "EC2 Spot Instance Interruption Warning" || s.Event.Detail["instance-id"] != spot[0] ||
		len(s.Event.Resources) != 1 || !strings.HasSuffix(s.Event.Resources[0], ":instance/"+spot[0]) || s.Event.Time.IsZero() {
		t.Errorf("the event is %+v", s.Event)
	}
	if s.Reclaimed.State != (state{48, "terminated"}) || s.Reclaimed.Reason != truth[spot[0]].EndCode {
		t.Errorf("the reclaimed instance is %+v, and ended with %s", s.Reclaimed, truth[spot[0]].EndCode)
	}
	if len(s.Terminating) != len(truth) {
		t.Errorf("%d instances were ended of %d", len(s.Terminating), len(truth))
	}
	for id, i := range truth {
		want := [2]string{"running", "shutting-down"}
		if id == spot[0] {
			want = [2]string{"terminated", "terminated"}
		}
		if s.Terminating[id] != want || i.State != "terminated" {
			t.Errorf("%s went %v, and is %s", id, s.Terminating[id], i.State)
		}
	}
	if s.Ended.Reason != "Client.UserInitiatedShutdown" || !strings.HasPrefix(s.Ended.Transition, "Client.UserInitiatedShutdown") || s.TemplateDeleted != "clients" {
		t.Errorf("the end: %+v, and template %s", s.Ended, s.TemplateDeleted)
	}
	var calls map[string]ec2sim.CallCount
	a.control(t, http.MethodGet, "calls", "", &calls)
	if calls["CreateFleet"].Total != 3 || calls["TerminateInstances"].Failed != 2 {
		t.Errorf("the account counted %+v fleets, %+v terminations", calls["CreateFleet"], calls["TerminateInstances"])
	}
}

func (s seen) errors(t *testing.T) {
	want := map[string]string{
		"unknown instance":                   "InvalidInstanceID.NotFound 400",
		"no instance's id":                   "InvalidInstanceID.Malformed 400",
		"unknown filter":                     "InvalidParameterValue 400",
		"unknown template":                   "InvalidLaunchTemplateName.NotFoundException 400",
		"unknown image":                      "InvalidAMIID.NotFound 400",
		"unknown type":                       "InvalidInstanceType 400",
		"page too small":                     "InvalidParameterValue 400",
		"bad paging token":                   "InvalidParameterValue 400",
		"parameter that boto3 does not know": "refused by the client",
		"value of the wrong type":            "refused by the client",
		"no permission":                      "UnauthorizedOperation 403",
		"no permission, dry run":             "UnauthorizedOperation 403",
		"permission":                         "done",
		"no permission of IAM":               "AccessDenied 403",
		"no such cluster":                    "ResourceNotFoundException 404",
		"no such parameter":                  "ParameterNotFound 400",
	}
	if diff := cmp.Diff(want, s.Errors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
