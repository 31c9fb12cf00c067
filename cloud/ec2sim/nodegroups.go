package ec2sim

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"
)

// nodeGroup is a managed node group of the account's cluster.
type nodeGroup struct {
	Name      string
	Request   nodeGroupRequest
	Scaling   nodeGroupScaling
	Release   string
	Group     string // its Auto Scaling group
	CreatedAt time.Time
	ChangedAt time.Time
}

// nodeGroupRequest is a request of CreateNodegroup. What the simulator only answers again is kept as it is.
type nodeGroupRequest struct {
	NodegroupName      string            `json:"nodegroupName,omitempty"`
	ClientRequestToken string            `json:"clientRequestToken,omitempty"`
	AMIType            string            `json:"amiType,omitempty"`
	CapacityType       string            `json:"capacityType,omitempty"`
	DiskSize           *int              `json:"diskSize,omitempty"`
	InstanceTypes      []string          `json:"instanceTypes,omitempty"`
	Labels             map[string]string `json:"labels,omitempty"`
	LaunchTemplate     *templateRef      `json:"launchTemplate,omitempty"`
	NodeRepairConfig   json.RawMessage   `json:"nodeRepairConfig,omitempty"`
	NodeRole           string            `json:"nodeRole,omitempty"`
	RemoteAccess       json.RawMessage   `json:"remoteAccess,omitempty"`
	ScalingConfig      *nodeGroupScaling `json:"scalingConfig,omitempty"`
	Subnets            []string          `json:"subnets,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
	Taints             []nodeGroupTaint  `json:"taints,omitempty"`
	UpdateConfig       json.RawMessage   `json:"updateConfig,omitempty"`
}

type templateRef struct {
	ID      string `json:"id,omitempty"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

type nodeGroupScaling struct {
	Min     *int `json:"minSize,omitempty"`
	Max     *int `json:"maxSize,omitempty"`
	Desired *int `json:"desiredSize,omitempty"`
}

type nodeGroupTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

var (
	nodeGroupsPath = regexp.MustCompile(`^/clusters/([^/]+)/node-groups/?$`)
	nodeGroupPath  = regexp.MustCompile(`^/clusters/([^/]+)/node-groups/([^/]+)(/update-config)?/?$`)
)

// nodeGroupAction returns the action of a request for node groups, or "".
func nodeGroupAction(method, path string) string {
	one := nodeGroupPath.FindStringSubmatch(path)
	switch {
	case method == http.MethodGet && nodeGroupsPath.MatchString(path):
		return "ListNodegroups"
	case method == http.MethodPost && nodeGroupsPath.MatchString(path):
		return "CreateNodegroup"
	case method == http.MethodGet && one != nil && one[3] == "":
		return "DescribeNodegroup"
	case method == http.MethodPost && one != nil && one[3] != "":
		return "UpdateNodegroupConfig"
	}
	return ""
}

// nodeGroups are the managed node groups, as EKS and the Auto Scaling groups below them keep them: as many instances run as are
// desired, at once.
type nodeGroups struct {
	*table[nodeGroup]
	account   *account
	eks       *eks
	scaling   *scalingGroups
	instances *instances
	launcher  *launcher
	templates *launchTemplates
	ssm       *ssm
}

// named returns the group that a path names. It fails unless the path is of the account's cluster.
func (ng *nodeGroups) named(path string) (*nodeGroup, error) {
	match := nodeGroupPath.FindStringSubmatch(path)
	if match == nil || match[1] != ng.eks.cluster {
		return nil, noCluster(path)
	}
	g := ng.rows[match[2]]
	if g == nil {
		return nil, &apiError{http.StatusNotFound, "ResourceNotFoundException", "No node group found for name: " + match[2] + "."}
	}
	return g, nil
}

func noCluster(path string) error {
	return &apiError{http.StatusNotFound, "ResourceNotFoundException", "No cluster found for " + path}
}

// list handles ListNodegroups.
func (ng *nodeGroups) list(c *call) (any, error) {
	if match := nodeGroupsPath.FindStringSubmatch(c.form.value); match[1] != ng.eks.cluster {
		return nil, noCluster(c.form.value)
	}
	size, err := c.form.integer("maxResults", 100)
	if err != nil {
		return nil, err
	}
	page, next, err := paginate(ng.ids(), func(name string) string { return name }, c.form.str("nextToken"), size)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"nodegroups": page}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}

// describe handles DescribeNodegroup.
func (ng *nodeGroups) describe(c *call) (any, error) {
	g, err := ng.named(c.form.value)
	if err != nil {
		return nil, err
	}
	return ng.answer(g)
}

// answer returns a group as EKS describes it.
func (ng *nodeGroups) answer(g *nodeGroup) (any, error) {
	data, err := json.Marshal(g.Request)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	delete(out, "clientRequestToken")
	maps.Copy(out, map[string]any{
		"clusterName": ng.eks.cluster, "nodegroupArn": ng.arn(g), "createdAt": epoch(g.CreatedAt), "modifiedAt": epoch(g.ChangedAt),
		"status": "ACTIVE", "version": ng.eks.version, "releaseVersion": g.Release, "scalingConfig": g.Scaling,
		"health": map[string]any{"issues": []any{}}, "resources": map[string]any{"autoScalingGroups": []any{map[string]any{"name": g.Group}}},
	})
	return map[string]any{"nodegroup": out}, nil
}

func (ng *nodeGroups) arn(g *nodeGroup) string {
	return ng.account.arn("eks", "nodegroup/"+ng.eks.cluster+"/"+g.Name+"/"+g.Group[len(g.Group)-36:])
}

// create handles CreateNodegroup.
func (ng *nodeGroups) create(c *call) (any, error) {
	if match := nodeGroupsPath.FindStringSubmatch(c.form.value); match[1] != ng.eks.cluster {
		return nil, noCluster(c.form.value)
	}
	in, err := decodeJSON[nodeGroupRequest](c)
	if err != nil {
		return nil, err
	}
	if ng.rows[in.NodegroupName] != nil {
		return nil, &apiError{http.StatusConflict, "ResourceInUseException", "NodeGroup already exists with name " + in.NodegroupName + " and cluster name " + ng.eks.cluster}
	}
	for _, id := range in.Subnets {
		if ng.account.subnet(id) == nil {
			return nil, refuse("InvalidParameterException", "The subnet ID '%s' does not exist", id)
		}
	}
	g := &nodeGroup{Name: in.NodegroupName, Request: in, CreatedAt: c.at, ChangedAt: c.at, Group: "eks-" + in.NodegroupName + "-" + c.id}
	g.defaults()
	if err := g.Scaling.merge(in.ScalingConfig); err != nil {
		return nil, err
	}
	if g.Release, err = ng.release(g); err != nil {
		return nil, err
	}
	// EKS tags the groups that it makes for the Cluster Autoscaler to find (EKS user guide, "Tagging your Amazon EKS resources").
	ng.scaling.put(g.Group, &scalingGroup{Name: g.Group, Subnets: in.Subnets, CreatedAt: c.at, Tags: []scalingTag{
		{"eks:cluster-name", ng.eks.cluster, true}, {"eks:nodegroup-name", g.Name, true}, {"k8s.io/cluster-autoscaler/enabled", "true", true},
		{"k8s.io/cluster-autoscaler/" + ng.eks.cluster, "owned", true}, {"kubernetes.io/cluster/" + ng.eks.cluster, "owned", true}}})
	if err := ng.scale(g, c.at); err != nil {
		ng.scaling.del(g.Group)
		return nil, err
	}
	return ng.answer(g)
}

// defaults fills in what CreateNodegroup leaves to EKS (EKS API reference, "CreateNodegroup").
func (g *nodeGroup) defaults() {
	r := &g.Request
	setDefault(&r.CapacityType, "ON_DEMAND")
	setDefault(&r.AMIType, "AL2023_x86_64_STANDARD")
	if r.LaunchTemplate == nil {
		if r.DiskSize == nil {
			size := 20
			r.DiskSize = &size
		}
		if len(r.InstanceTypes) == 0 {
			r.InstanceTypes = []string{"t3.medium"}
		}
	}
	if r.UpdateConfig == nil {
		r.UpdateConfig = json.RawMessage(`{"maxUnavailable":1}`)
	}
	one, two, most := 1, 2, 2
	g.Scaling = nodeGroupScaling{Min: &one, Desired: &two, Max: &most}
}

// merge changes the sizes that are given, and fails if the result makes no sense.
func (s *nodeGroupScaling) merge(over *nodeGroupScaling) error {
	if over != nil {
		s.Min, s.Max, s.Desired = cmp.Or(over.Min, s.Min), cmp.Or(over.Max, s.Max), cmp.Or(over.Desired, s.Desired)
	}
	if *s.Max < 1 || *s.Min > *s.Desired || *s.Desired > *s.Max {
		return refuse("InvalidParameterException", "Minimum capacity %d, desired capacity %d and maximum capacity %d are not in this order", *s.Min, *s.Desired, *s.Max)
	}
	return nil
}

// release returns the release of a group's image: with an image of somebody's own its id.
func (ng *nodeGroups) release(g *nodeGroup) (string, error) {
	if g.Request.AMIType == "CUSTOM" {
		spec, _, _, err := ng.spec(g)
		if err != nil {
			return "", err
		}
		return spec.ImageID, nil
	}
	if _, known := amazonLinux[g.Request.AMIType]; !known {
		return "", &apiError{http.StatusNotImplemented, "UnsupportedBySimulator", "Unsupported by the simulator: node groups with the AMI type " + g.Request.AMIType}
	}
	return ng.eks.version + ".0-" + imageReleases[len(imageReleases)-1].Format("20060102"), nil
}

// update handles UpdateNodegroupConfig.
func (ng *nodeGroups) update(c *call) (any, error) {
	g, err := ng.named(c.form.value)
	if err != nil {
		return nil, err
	}
	in, err := decodeJSON[struct {
		ClientRequestToken string            `json:"clientRequestToken"`
		ScalingConfig      *nodeGroupScaling `json:"scalingConfig"`
	}](c)
	if err != nil {
		return nil, err
	}
	before := g.Scaling
	if err := g.Scaling.merge(in.ScalingConfig); err != nil {
		g.Scaling = before
		return nil, err
	}
	g.ChangedAt = c.at
	if err := ng.scale(g, c.at); err != nil {
		return nil, err
	}
	params := []any{}
	for name, size := range map[string]*int{"MinSize": g.Scaling.Min, "MaxSize": g.Scaling.Max, "DesiredSize": g.Scaling.Desired} {
		params = append(params, map[string]any{"type": name, "value": strconv.Itoa(*size)})
	}
	return map[string]any{"update": map[string]any{
		"id": c.id, "status": "InProgress", "type": "ConfigUpdate", "params": params, "createdAt": epoch(c.at), "errors": []any{}}}, nil
}

// scale makes a group have as many instances as are desired.
func (ng *nodeGroups) scale(g *nodeGroup, at time.Time) error {
	var running []*instance
	for _, i := range ng.instances.sorted() {
		if i.Tags["aws:autoscaling:groupName"] == g.Group && !i.ended() {
			running = append(running, i)
		}
	}
	for n := len(running); n < *g.Scaling.Desired; n++ {
		if err := ng.launch(g, n, at); err != nil {
			return err
		}
	}
	for _, i := range running[min(*g.Scaling.Desired, len(running)):] {
		ng.instances.end(i, at, "Client.UserInitiatedShutdown", fmt.Sprintf("Client.UserInitiatedShutdown: User initiated shutdown (%s)", at.UTC().Format("2006-01-02 15:04:05 GMT")))
	}
	below := ng.scaling.rows[g.Group]
	below.Min, below.Max, below.Desired = *g.Scaling.Min, *g.Scaling.Max, *g.Scaling.Desired
	ng.scaling.put(g.Group, below)
	ng.put(g.Name, g)
	return nil
}

// spec returns what the group's launch template says.
func (ng *nodeGroups) spec(g *nodeGroup) (*launchSpec, *launchTemplate, int, error) {
	ref := g.Request.LaunchTemplate
	if ref == nil {
		return &launchSpec{}, nil, 0, nil
	}
	named := map[string][]string{"Version": {cmp.Or(ref.Version, "$Default")}}
	if ref.ID != "" {
		named["LaunchTemplateId"] = []string{ref.ID}
	} else {
		named["LaunchTemplateName"] = []string{ref.Name}
	}
	template, version, err := ng.templates.forLaunch(parseParams(named))
	if err != nil {
		return nil, nil, 0, err
	}
	return version.Spec.overlay(&launchSpec{}), template, version.Number, nil
}

// amazonLinux are the AMI types whose nodes the simulator can set up, with the image's directory in SSM.
var amazonLinux = map[string]string{"AL2023_x86_64_STANDARD": "x86_64/standard", "AL2023_ARM_64_STANDARD": "arm64/standard"}

// launch launches instance number n of a group.
func (ng *nodeGroups) launch(g *nodeGroup, n int, at time.Time) error {
	spec, template, version, err := ng.spec(g)
	if err != nil {
		return err
	}
	if g.Request.AMIType != "CUSTOM" {
		image, found := ng.ssm.find("/aws/service/eks/optimized-ami/" + ng.eks.version + "/amazon-linux-2023/" + amazonLinux[g.Request.AMIType] + "/recommended/image_id")
		if !found {
			return fmt.Errorf("no image of the AMI type %s for Kubernetes %s", g.Request.AMIType, ng.eks.version)
		}
		spec.ImageID = image.Value
		if spec.UserData, err = ng.userData(g, spec.UserData); err != nil {
			return err
		}
	}
	if len(g.Request.InstanceTypes) > 0 {
		spec.InstanceType = g.Request.InstanceTypes[0]
	}
	spec.SubnetID = g.Request.Subnets[n%len(g.Request.Subnets)]
	if len(spec.GroupIDs) == 0 {
		spec.GroupIDs = []string{ng.account.groups[0].ID}
	}
	if spec.Tags == nil {
		spec.Tags = map[string]map[string]string{}
	}
	tags := map[string]string{"aws:autoscaling:groupName": g.Group}
	for _, tag := range ng.scaling.rows[g.Group].Tags {
		tags[tag.Key] = tag.Value
	}
	maps.Copy(tags, spec.Tags["instance"])
	spec.Tags = maps.Clone(spec.Tags)
	spec.Tags["instance"] = tags
	order, err := ng.launcher.prepare(spec)
	if err != nil {
		return err
	}
	order.template, order.version, order.reservation = template, version, newID("r")
	order.spot = g.Request.CapacityType == "SPOT"
	_, err = ng.launcher.obtain(order, n, at)
	return err
}

// userData returns the user data of a node of Amazon Linux 2023 in base64: those of the launch template, then what the node needs
// to join.
func (ng *nodeGroups) userData(g *nodeGroup, own string) (string, error) {
	if own != "" { // two archives would have to be merged
		return "", &apiError{http.StatusNotImplemented, "UnsupportedBySimulator", "Unsupported by the simulator: user data in the launch template of a node group with images of Amazon"}
	}
	var labels bytes.Buffer
	fmt.Fprintf(&labels, "--node-labels=eks.amazonaws.com/nodegroup=%s,eks.amazonaws.com/capacityType=%s", g.Name, g.Request.CapacityType)
	for _, key := range slices.Sorted(maps.Keys(g.Request.Labels)) {
		fmt.Fprintf(&labels, ",%s=%s", key, g.Request.Labels[key])
	}
	taints := []map[string]string{}
	for _, taint := range g.Request.Taints {
		taints = append(taints, map[string]string{"key": taint.Key, "value": taint.Value, "effect": kubernetesEffects[taint.Effect]})
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": map[string]any{
		"cluster": map[string]any{"name": ng.eks.cluster, "apiServerEndpoint": ng.eks.endpoint, "certificateAuthority": base64.StdEncoding.EncodeToString(ng.eks.ca), "cidr": serviceCIDR},
		"kubelet": map[string]any{"config": map[string]any{"registerWithTaints": taints}, "flags": []string{labels.String()}}}})
	return base64.StdEncoding.EncodeToString(text), err
}

// kubernetesEffects are Kubernetes' names of the effects of taints, by EKS's.
var kubernetesEffects = map[string]string{"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
