package lab

// user is a user of the API server; each component has its own, so that audit logs tell them apart.
type user string

const (
	userAdmin             user = "admin"
	userControllerManager user = "system:kube-controller-manager"
	userScheduler         user = "system:kube-scheduler"
	userKwok              user = "kwok"
	userEC2Sim            user = "ec2sim"
	userTenon             user = "tenon"
)

// groupOf returns the group a user belongs to. The control plane's own users get their rights by name, and the worker
// has those that the chart grants it.
func groupOf(u user) string {
	switch u {
	case userControllerManager, userScheduler, userTenon:
		return ""
	default:
		return "system:masters"
	}
}

func users() []user {
	return []user{userAdmin, userControllerManager, userScheduler, userKwok, userEC2Sim, userTenon}
}

// AdminUser is who the API server takes the user of Kubeconfig for.
const AdminUser = string(userAdmin)
