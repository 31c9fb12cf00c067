package deploy

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// KwokDefinition returns the custom resource definition of KWOKNodeClass, as YAML. It is not among CRDs, because the chart
// installs those.
func KwokDefinition() ([]byte, error) { return readKwok("definition") }

// KwokDefaults returns the KWOKNodeClass and the NodePool named default, as YAML of two documents.
func KwokDefaults() ([]byte, error) { return readKwok("defaults") }

// KwokRoles grants a subject what a worker of the kwok provider does beyond WorkerRoles.
func KwokRoles(subject rbacv1.Subject) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, error) {
	data, err := readKwok("cluster-role")
	if err != nil {
		return nil, nil, err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		return nil, nil, fmt.Errorf("kwok/cluster-role.yaml: %w", err)
	}
	return role, &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}, nil
}

func readKwok(name string) ([]byte, error) {
	data, err := files.ReadFile("kwok/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read kwok/%s.yaml: %w", name, err)
	}
	return data, nil
}
