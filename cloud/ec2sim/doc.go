// Package ec2sim plays an AWS account over HTTP: a server that speaks the wire protocols of EC2, SSM, IAM, EKS, Pricing,
// SQS, STS and FIS, so that unmodified AWS SDKs and tools can be pointed at it. It exists so that everything that launches
// nodes can be tested, and shown, without an account.
//
// # Shape
//
// One mutex guards the account (guard.go). A request is taken apart (readcall.go: the service is told by the credential scope of
// its signature, the action by what the protocol uses), faults are drawn for it (injector.go, throttle.go), policies are asked
// (authorize.go), its handler runs with the account locked (actions.go lists them all), the changes are written to the journal
// (journal.go), and only then it is answered (protocol.go). So whatever a client was told is on disk, and a SIGKILL at any moment
// loses nothing that was promised.
//
// A service has a type of its own, and so has each subject of EC2: images, launch templates, security groups, fleets and so on.
// It has what it needs of the others, answers its actions and says what they need of policies. parts.go puts them together, and
// Server is what serves and controls them.
//
// An instance carries instants, not a state: when it was launched, will run, was ended. What it is at any moment follows
// from the clock (instance.go). Nothing has to be advanced, and a simulator that was down for an hour finds every instance
// where an hour has brought it. Spot prices and pool depths follow from names and the hour since the server
// began (market.go), so runs repeat.
//
// # What exists
//
// AWS's published model decides which operations, parameters, values and filters there are (model.go): a request is held
// against it before its handler runs, so that the simulator does not agree with a client's mistakes. What it takes beyond the
// model is listed with the reason (modelexceptions.go). A parameter that exists and that the handler does not look at is refused
// with UnsupportedBySimulator, status 501, unless it is listed as ignored with the reason (unsupported.go).
// Answers are held against the models of other people's clients (test/clients).
//
// # The account
//
// Region us-east-1 with zones a, b and c, or another region of any partition, with Local Zones where Options name some; a VPC;
// a private /19 subnet per zone and two security groups, the cluster's and the nodes', tagged
// karpenter.sh/discovery=<cluster>; Amazon's images of Amazon Linux 2023 and 2, Bottlerocket and Windows with their SSM
// parameters, and images and parameters of its own and of other accounts as Options or the control endpoint have them; any IAM
// role; one EKS cluster, of IPv4 or of IPv6; capacity reservations as they are made; no placement groups. The instance types are real ones (catalogue.txt).
//
// # Nodes
//
// With Options.Kubernetes set, an instance that has booted joins the cluster as its kubelet would (kubelets.go, node.go):
// what the Node looks like follows from the instance type and from the user data of its launch template.
//
// # Control
//
// Beside the AWS protocols the server answers JSON over HTTP below /_sim/; see ControlHelp. The same is there as methods of
// Server.
//
// Reading order: apierror, params, filter, paging, tags, call, modelexceptions, model, modelquery, modeljson, unsupported,
// sqsquery, protocol, journal, guard, account, catalogue, market, userdata, nodeconfig, launchspec, instance, faults, calls,
// throttle, injector, fleet, idempotency, tagsets, authorize, iam, roles, sts, eks, pricing, sqs, events, instancetypes, image,
// amazonimages, compatibility, images, describeimages, ownimages, ssm, addresses, launchtemplate, launchorder, launchtemplates,
// network, subnets, securitygroups, volumes, spotprices, reservations, allocations, instances, launch, instancexml,
// describeinstances, instancestatus, spotrequests, terminate, stop, runinstances, allocation, fleetrequest, fleets, tagapi,
// fis, authorizeec2, node, kubelets, options, parts, actions, readcall, server, inspect, control, controlapi, serve,
// once.
package ec2sim
