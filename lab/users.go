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

// groupOf returns the group a user belongs to, or "". The control plane's users get their rights by name, and the worker
// has the rights that the chart grants it.
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

// AdminUser is the user name with which Kubeconfig authenticates at the API server.
const AdminUser = string(userAdmin)
