package lab

// Component is the name of one process of a lab, and of its log and pid files.
type Component string

// The components of a lab, in the order in which they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
	Postgres          Component = "postgres"
	Temporal          Component = "temporal"
	EC2Sim            Component = "ec2sim"
	Worker            Component = "worker"
)

// ControlPlane returns the components of the Kubernetes cluster.
func ControlPlane() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// All returns every component but Postgres, which a lab has only with Options.Postgres.
func All() []Component { return append(ControlPlane(), Temporal, EC2Sim, Worker) }
