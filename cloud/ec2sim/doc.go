// Package ec2sim simulates an AWS account over HTTP. It serves the wire protocols of EC2, EC2 Auto Scaling, SSM, IAM, EKS,
// Pricing, SQS, EventBridge, STS and FIS, so that unmodified AWS SDKs and tools can use it. With it, everything that launches nodes can be tested,
// and demonstrated, without an account.
//
// # Shape
//
// One mutex guards the account (guard.go). A request passes through these steps: it is parsed (readcall.go: the
// credential scope of its signature names the service, the protocol determines where the action is), faults are drawn for
// it (injector.go, throttle.go), policies are evaluated (authorize.go), its handler runs with the account locked
// (actions.go lists all handlers), the changes are written to the journal (journal.go), and only then the client gets its
// answer (protocol.go). So everything a client has seen is on disk, and a SIGKILL at any moment loses nothing that was
// acknowledged.
//
// Each service has its own type, and so has each subject of EC2: images, launch templates, security groups, fleets and so
// on. Such a type holds references to the others it needs, handles its actions and determines which permissions they
// need. parts.go assembles them, and Server serves and controls them.
//
// An instance stores instants, not a state: when it was launched, will run, was ended. Its state at any moment follows
// from the clock (instance.go). Nothing has to be advanced, and after an hour of downtime the simulator finds every
// instance in the state it would have reached. Spot prices and pool depths follow from names and the hour since the
// server began (package catalogue), so runs are repeatable.
//
// # What exists
//
// AWS's published model decides which operations, parameters, values and filters exist (model.go). A request is checked
// against it before its handler runs, so that the simulator does not accept a client's mistakes. modelexceptions.go lists
// what the simulator accepts beyond the model, with the reasons. A parameter that exists but that the handler does not
// read is refused with UnsupportedBySimulator, status 501, unless unsupported.go lists it as ignored, with the reason.
// Responses are checked against the models of third-party clients (test/clients).
//
// # The account
//
// The account has: region us-east-1 with zones a, b and c, or another region of any partition, with Local Zones if
// Options name some; a VPC; a private /19 subnet per zone and two security groups, the cluster's and the nodes', tagged
// karpenter.sh/discovery=<cluster>; Amazon's images of Amazon Linux 2023 and 2, Bottlerocket and Windows with their SSM
// parameters, and further images and parameters, of this and of other accounts, from Options or the control endpoint; any
// IAM role; one EKS cluster, of IPv4 or of IPv6; capacity reservations and placement groups as they are created. The
// instance types are real ones (package catalogue).
//
// # Nodes
//
// With Options.Kubernetes set, an instance that has booted joins the cluster as its kubelet would (kubelets.go, node.go).
// The instance type and the user data of its launch template determine the Node.
//
// # Control
//
// Besides the AWS protocols, the server offers JSON over HTTP below /_sim/; see ControlHelp. Server has methods for the
// same purposes.
//
// # Node groups
//
// EKS's managed node groups are played with their Auto Scaling groups: as many instances as are desired run at once, and with
// Options.Kubernetes join the cluster as nodes of the group. Auto Scaling groups of somebody's own are kept and described, and
// have no instances.
//
// Reading order: apierror, params, filter, paging, tags, call, modelexceptions, model, modelquery, modeljson, unsupported,
// sqsquery, protocol, journal, guard, account, machines, userdata, nodeconfig, bootstrapscript,
// bottlerocketsettings, powershell, launchspec, instance, faults, calls, throttle, injector, fleet, idempotency,
// tagsets, authorize, iam, roles, sts, eks, zonalshift, pricing, sqs, rules, events, instancetypes, image,
// amazonimages, compatibility, images, describeimages, ownimages, ssm, addresses, launchtemplate, launchorder, launchtemplates,
// network, subnets, securitygroups, volumes, spotprices, reservations, allocations, placementgroups, instances, launch, scalinggroups,
// nodegroups, instancexml,
// describeinstances, instancestatus, spotrequests, terminate, stop, runinstances, allocation, fleetrequest, fleets, tagapi,
// fis, authorizeec2, node, kubelets, options, parts, actions, readcall, server, inspect, control, controlapi, serve,
// once.
package ec2sim
