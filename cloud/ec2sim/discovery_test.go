package ec2sim_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func filterOf(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: aws.String(name), Values: values}
}

func TestInstanceTypesArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	types := map[string]ec2types.InstanceTypeInfo{}
	pages := 0
	p := ec2.NewDescribeInstanceTypesPaginator(a.ec2, &ec2.DescribeInstanceTypesInput{
		Filters: []ec2types.Filter{
			filterOf("supported-virtualization-type", "hvm"), filterOf("processor-info.supported-architecture", "x86_64", "arm64"),
		},
	})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, it := range out.InstanceTypes {
			types[string(it.InstanceType)] = it
		}
	}
	if len(types) < 400 || pages < 5 {
		t.Errorf("got %d types on %d pages, want hundreds on several", len(types), pages)
	}
	m5 := types["m5.large"]
	if *m5.VCpuInfo.DefaultVCpus != 2 || *m5.MemoryInfo.SizeInMiB != 8192 || *m5.NetworkInfo.MaximumNetworkInterfaces != 3 ||
		*m5.NetworkInfo.Ipv4AddressesPerInterface != 10 || m5.Hypervisor != ec2types.InstanceTypeHypervisorNitro ||
		len(m5.ProcessorInfo.SupportedArchitectures) != 1 || m5.ProcessorInfo.SupportedArchitectures[0] != ec2types.ArchitectureTypeX8664 {
		t.Errorf("m5.large is %+v", m5)
	}
	if g := types["g5.12xlarge"].GpuInfo; g == nil || *g.Gpus[0].Count != 4 || *g.Gpus[0].Name != "A10G" {
		t.Errorf("g5.12xlarge has GPUs %+v", g)
	}
	if s := types["m5d.xlarge"].InstanceStorageInfo; s == nil || *s.TotalSizeInGB != 150 || s.NvmeSupport != ec2types.EphemeralNvmeSupportRequired {
		t.Errorf("m5d.xlarge has instance store %+v", s)
	}
	if n := types["inf2.24xlarge"].NeuronInfo; n == nil || *n.NeuronDevices[0].Count != 6 {
		t.Errorf("inf2.24xlarge has Neuron devices %+v", n)
	}
	if n := types["p4d.24xlarge"].NetworkInfo; *n.MaximumNetworkCards != 4 || *n.NetworkCards[0].MaximumNetworkInterfaces != 15 || *n.EfaInfo.MaximumEfaInterfaces != 4 {
		t.Errorf("p4d.24xlarge has network %+v", n)
	}
	_, err := a.ec2.DescribeInstanceTypes(ctx(t), &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"m5.tiny"}})
	wantCode(t, err, "InvalidInstanceType")
	_, err = a.ec2.DescribeInstanceTypes(ctx(t), &ec2.DescribeInstanceTypesInput{Filters: []ec2types.Filter{filterOf("colour", "red")}})
	wantCode(t, err, "InvalidParameterValue")
}

func TestOfferings(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for location, want := range map[ec2types.LocationType]string{
		ec2types.LocationTypeAvailabilityZone: "us-east-1a", ec2types.LocationTypeAvailabilityZoneId: "use1-az1", ec2types.LocationTypeRegion: "us-east-1",
	} {
		found := map[string]bool{}
		p := ec2.NewDescribeInstanceTypeOfferingsPaginator(a.ec2, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: location})
		for p.HasMorePages() {
			out, err := p.NextPage(ctx(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out.InstanceTypeOfferings {
				found[string(o.InstanceType)+" "+aws.ToString(o.Location)] = true
			}
		}
		if !found["m5.large "+want] {
			t.Errorf("%s: m5.large is not offered in %s", location, want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Cluster: "blue"})
	zones, err := a.ec2.DescribeAvailabilityZones(ctx(t), &ec2.DescribeAvailabilityZonesInput{Filters: []ec2types.Filter{filterOf("zone-type", "availability-zone")}})
	if err != nil || len(zones.AvailabilityZones) != 3 || *zones.AvailabilityZones[2].ZoneId != "use1-az3" {
		t.Errorf("zones: %+v, %v", zones, err)
	}
	discovery := []ec2types.Filter{filterOf("tag:karpenter.sh/discovery", "blue")}
	subnets, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: discovery})
	if err != nil || len(subnets.Subnets) != 3 || *subnets.Subnets[0].AvailableIpAddressCount != 8187 {
		t.Errorf("subnets: %+v, %v", subnets, err)
	}
	groups, err := a.ec2.DescribeSecurityGroups(ctx(t), &ec2.DescribeSecurityGroupsInput{Filters: discovery})
	if err != nil || len(groups.SecurityGroups) != 2 {
		t.Errorf("security groups: %+v, %v", groups, err)
	}
	vpcs, err := a.ec2.DescribeVpcs(ctx(t), &ec2.DescribeVpcsInput{VpcIds: []string{*subnets.Subnets[0].VpcId}})
	if err != nil || len(vpcs.Vpcs) != 1 {
		t.Errorf("VPCs: %+v, %v", vpcs, err)
	}
	none, err := a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filterOf("tag-key", "nobody's")}})
	if err != nil || len(none.Subnets) != 0 {
		t.Errorf("subnets by a tag that none has: %+v, %v", none, err)
	}
	_, err = a.ec2.DescribeSubnets(ctx(t), &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-nowhere"}})
	wantCode(t, err, "InvalidSubnetID.NotFound")
	if r, err := a.ec2.DescribeCapacityReservations(ctx(t), &ec2.DescribeCapacityReservationsInput{}); err != nil || len(r.CapacityReservations) != 0 {
		t.Errorf("reservations: %+v, %v", r, err)
	}
	if g, err := a.ec2.DescribePlacementGroups(ctx(t), &ec2.DescribePlacementGroupsInput{}); err != nil || len(g.PlacementGroups) != 0 {
		t.Errorf("placement groups: %+v, %v", g, err)
	}
}

func TestImagesAreFoundThroughParameters(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	id := a.image(t, "arm64")
	out, err := a.ec2.DescribeImages(ctx(t), &ec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil || len(out.Images) != 1 || out.Images[0].Architecture != ec2types.ArchitectureValuesArm64 {
		t.Fatalf("image %s: %+v, %v", id, out, err)
	}
	named, err := a.ec2.DescribeImages(ctx(t), &ec2.DescribeImagesInput{
		Owners: []string{"amazon"}, Filters: []ec2types.Filter{filterOf("name", "amazon-eks-node-al2023-arm64-standard-1.36-*")},
	})
	if err != nil || len(named.Images) != 2 {
		t.Errorf("images by name: %+v, %v; want two releases", named, err)
	}
	version := "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/" + *out.Images[0].Name + "/image_id"
	params, err := a.ssm().GetParameters(ctx(t), &ssm.GetParametersInput{Names: []string{version, "/no/such"}})
	if err != nil || len(params.Parameters) != 1 || *params.Parameters[0].Value != id || len(params.InvalidParameters) != 1 {
		t.Errorf("parameters: %+v, %v", params, err)
	}
	count := 0
	p := ssm.NewGetParametersByPathPaginator(a.ssm(), &ssm.GetParametersByPathInput{
		Path: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023"), Recursive: aws.Bool(true),
	})
	for p.HasMorePages() {
		page, err := p.NextPage(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		count += len(page.Parameters)
	}
	if want := 5 * 3; count != want { // five lines, two releases and a recommendation each
		t.Errorf("%d parameters below the path, want %d", count, want)
	}
	_, err = a.ssm().GetParameter(ctx(t), &ssm.GetParameterInput{Name: aws.String("/no/such")})
	wantCode(t, err, "ParameterNotFound")
}

func TestPrices(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	prices := map[string]string{}
	p := pricing.NewGetProductsPaginator(a.pricing(), &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"),
		Filters: []pricingtypes.Filter{
			term("regionCode", "us-east-1"), term("productFamily", "Compute Instance"), term("tenancy", "Shared"),
			term("operatingSystem", "Linux"), term("capacitystatus", "Used"), term("preInstalledSw", "NA"), term("marketoption", "OnDemand"),
		},
	})
	for p.HasMorePages() {
		out, err := p.NextPage(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range out.PriceList {
			var product struct {
				Product struct{ Attributes struct{ InstanceType string } }
				Terms   struct {
					OnDemand map[string]struct {
						PriceDimensions map[string]struct{ PricePerUnit struct{ USD string } }
					}
				}
			}
			if err := json.Unmarshal([]byte(text), &product); err != nil {
				t.Fatal(err)
			}
			for _, offer := range product.Terms.OnDemand {
				for _, dimension := range offer.PriceDimensions {
					name := product.Product.Attributes.InstanceType
					if prices[name] != "" {
						t.Errorf("%s has two prices", name)
					}
					prices[name] = dimension.PricePerUnit.USD
				}
			}
		}
	}
	if len(prices) < 350 || prices["m5.large"] != "0.0960000000" {
		t.Errorf("%d prices, m5.large costs %q", len(prices), prices["m5.large"])
	}
	spot, err := a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []ec2types.InstanceType{"m5.large"}, ProductDescriptions: []string{"Linux/UNIX"},
	})
	if err != nil || len(spot.SpotPriceHistory) != 3 {
		t.Fatalf("spot prices: %+v, %v", spot, err)
	}
	for _, s := range spot.SpotPriceHistory {
		if price := *s.SpotPrice; price < "0.019200" || price > "0.100800" {
			t.Errorf("spot price of m5.large in %s is %s, want 20 to 105 %% of 0.096", *s.AvailabilityZone, price)
		}
	}
	all, err := a.ec2.DescribeSpotPriceHistory(ctx(t), &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Linux/UNIX"}, MaxResults: aws.Int32(2000)})
	if err != nil || len(all.SpotPriceHistory) <= 1000 {
		t.Errorf("%d spot prices on a page of 2,000, as Karpenter asks for them: %v", len(all.SpotPriceHistory), err)
	}
}

func term(field, value string) pricingtypes.Filter {
	return pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
}

func TestIdentityAndCluster(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{ClusterEndpoint: "https://10.0.0.1", ClusterCA: []byte("PEM")})
	who, err := a.sts().GetCallerIdentity(ctx(t), &sts.GetCallerIdentityInput{})
	if err != nil || len(*who.Account) != 12 {
		t.Errorf("caller: %+v, %v", who, err)
	}
	cluster, err := a.eks().DescribeCluster(ctx(t), &eks.DescribeClusterInput{Name: aws.String("tenon")})
	if err != nil || *cluster.Cluster.Endpoint != "https://10.0.0.1" || *cluster.Cluster.CertificateAuthority.Data != "UEVN" ||
		*cluster.Cluster.KubernetesNetworkConfig.ServiceIpv4Cidr != "10.96.0.0/16" || *cluster.Cluster.Version != "1.36" {
		t.Errorf("cluster: %+v, %v", cluster, err)
	}
	_, err = a.eks().DescribeCluster(ctx(t), &eks.DescribeClusterInput{Name: aws.String("other")})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestInstanceProfiles(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	client, name := a.iam(), aws.String("tenon_1234")
	_, err := client.GetInstanceProfile(ctx(t), &iam.GetInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "NoSuchEntity")
	create := &iam.CreateInstanceProfileInput{InstanceProfileName: name, Path: aws.String("/karpenter/us-east-1/tenon/uid/")}
	if _, err := client.CreateInstanceProfile(ctx(t), create); err != nil {
		t.Fatal(err)
	}
	_, err = client.CreateInstanceProfile(ctx(t), create)
	wantCode(t, err, "EntityAlreadyExists")
	if err := a.sim.SetFaults(ec2sim.Faults{NoRoles: []string{"gone-*"}}); err != nil {
		t.Fatal(err)
	}
	_, err = client.AddRoleToInstanceProfile(ctx(t), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("gone-nodes")})
	wantCode(t, err, "NoSuchEntity")
	add := &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("KarpenterNodeRole-tenon")}
	if _, err := client.AddRoleToInstanceProfile(ctx(t), add); err != nil {
		t.Fatal(err)
	}
	_, err = client.AddRoleToInstanceProfile(ctx(t), add)
	wantCode(t, err, "LimitExceeded")
	got, err := client.GetInstanceProfile(ctx(t), &iam.GetInstanceProfileInput{InstanceProfileName: name})
	if err != nil || len(got.InstanceProfile.Roles) != 1 || *got.InstanceProfile.Roles[0].RoleName != "KarpenterNodeRole-tenon" {
		t.Errorf("profile: %+v, %v", got, err)
	}
	list, err := client.ListInstanceProfiles(ctx(t), &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-east-1/tenon/")})
	if err != nil || len(list.InstanceProfiles) != 1 {
		t.Errorf("profiles: %+v, %v", list, err)
	}
	_, err = client.DeleteInstanceProfile(ctx(t), &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
	wantCode(t, err, "DeleteConflict")
	if _, err := client.RemoveRoleFromInstanceProfile(ctx(t), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: add.RoleName}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteInstanceProfile(ctx(t), &iam.DeleteInstanceProfileInput{InstanceProfileName: name}); err != nil {
		t.Fatal(err)
	}
	role, err := client.GetRole(ctx(t), &iam.GetRoleInput{RoleName: aws.String("any")})
	if err != nil || *role.Role.RoleName != "any" {
		t.Errorf("role: %+v, %v", role, err)
	}
}
