package deploy

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// leasePlaceholder stands for the Lease's name in the chart's rules for it.
const leasePlaceholder = "LEASE"

// WorkerRBAC is what the Helm chart lets the worker do, as objects for a cluster without Helm.
type WorkerRBAC struct {
	ClusterRole        *rbacv1.ClusterRole
	ClusterRoleBinding *rbacv1.ClusterRoleBinding
	Role               *rbacv1.Role
	RoleBinding        *rbacv1.RoleBinding
	// PauseRole and PauseRoleBinding are for the ConfigMap of what is paused, in its own namespace.
	PauseRole        *rbacv1.Role
	PauseRoleBinding *rbacv1.RoleBinding
}

// WorkerRoles grants a subject exactly what the chart grants the worker. The Role is for the namespace and the name of
// the leader's Lease. The laboratory runs its worker under these roles, so that a permission the chart lacks fails
// there and not in a production cluster.
//
// They are those of a worker that nominates pods, and with dynamicResources those of one with that feature gate.
func WorkerRoles(name string, subject rbacv1.Subject, leaseNamespace, leaseName string, dynamicResources bool) (*WorkerRBAC, error) {
	clusterRules, err := rules("cluster-role", "")
	if err != nil {
		return nil, err
	}
	nomination, err := rules("nomination", "")
	if err != nil {
		return nil, err
	}
	clusterRules = append(clusterRules, nomination...)
	if dynamicResources {
		further, err := rules("dynamic-resources", "")
		if err != nil {
			return nil, err
		}
		clusterRules = append(clusterRules, further...)
	}
	leaseRules, err := rules("lease-role", leaseName)
	if err != nil {
		return nil, err
	}
	pauseRules, err := rules("pause-role", "")
	if err != nil {
		return nil, err
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	typed := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	global, local := metav1.ObjectMeta{Name: name}, metav1.ObjectMeta{Name: name, Namespace: leaseNamespace}
	pauses := metav1.ObjectMeta{Name: name + "-pauses", Namespace: karpv1.PauseNamespace}
	subjects := []rbacv1.Subject{subject}
	return &WorkerRBAC{
		ClusterRole:        &rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: global, Rules: clusterRules},
		ClusterRoleBinding: &rbacv1.ClusterRoleBinding{TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: global, Subjects: subjects, RoleRef: ref("ClusterRole")},
		Role:               &rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: local, Rules: leaseRules},
		RoleBinding:        &rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: local, Subjects: subjects, RoleRef: ref("Role")},
		PauseRole:          &rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: pauses, Rules: pauseRules},
		PauseRoleBinding: &rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: pauses, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: pauses.Name}},
	}, nil
}

// HookRules are what the chart lets the worker do in a namespace whose CronJobs hooks of NodePools may use.
func HookRules() ([]rbacv1.PolicyRule, error) { return rules("hook-role", "") }

// rules reads one of the chart's lists of rules.
func rules(name, lease string) ([]rbacv1.PolicyRule, error) {
	data, err := files.ReadFile("chart/rbac/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read the chart's rules: %w", err)
	}
	var list []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(data), leasePlaceholder, lease)), &list); err != nil {
		return nil, fmt.Errorf("the chart's rules %s: %w", name, err)
	}
	return list, nil
}
