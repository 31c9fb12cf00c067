// Package ec2sim plays an AWS account over HTTP: a server that speaks the wire protocols of EC2, SSM, IAM, EKS, Pricing,
// SQS, STS and FIS, so that unmodified AWS SDKs and tools can be pointed at it. It exists so that everything that launches
// nodes can be tested, and shown, without an account.
//
// # Shape
//
// One mutex guards the account. A request is taken apart (request.go: the service is told by the credential scope of its
// signature, the action by what the protocol uses), faults are drawn for it (faults.go, throttle.go), its handler runs
// with the account locked (actions.go lists them all), the changes are written to the journal (journal.go), and only then
// it is answered. So whatever a client was told is on disk, and a SIGKILL at any moment loses nothing that was promised.
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
package ec2sim

// ControlHelp describes the control endpoint.
const ControlHelp = `Control and inspection, JSON over HTTP below /_sim/:
  GET    /_sim/health          answers as soon as the simulator serves
  GET    /_sim/instances       every instance as it truly is, without describe lag; terminated ones for an hour
  GET    /_sim/cost            number of living instances, their price per hour, and how many of each type
  GET    /_sim/calls           per action: total, throttled, failed, lost; since the start or the last reset
  GET    /_sim/calls?action=P  the calls themselves, with time, error code and client token; P may have * and ?
  POST   /_sim/calls/reset     forget the calls
  POST   /_sim/calls/keep      {"actions":["Create*"]}: from now on, calls of these actions carry their parameters, as sent
  GET    /_sim/faults          the faults in force
  PUT    /_sim/faults          replace them (below)
  DELETE /_sim/faults          heal everything
  POST   /_sim/interrupt       {"instances":["i-..."],"notice":"2m"}: interruption of spot instances, and of those in an
                               interruptible capacity reservation, with the event to every SQS queue
  POST   /_sim/rebalance       {"instances":["i-..."]}: rebalance recommendation to every SQS queue
  POST   /_sim/event           {"event":"stopped","instances":["i-..."]}: only the event to every SQS queue, whether there are
                               such instances or not: spot-interruption, rebalance-recommendation, reservation-interruption,
                               scheduled-change (of AWS Health), or a state: pending to terminated
  POST   /_sim/message         {"body":"..."}: any text to every SQS queue
  POST   /_sim/status          {"instances":["i-..."],"instance":"impaired","system":"ok","for":"3m","event":"instance-stop"}:
                               what DescribeInstanceStatus says of instances: checks failed since a while ago, a scheduled event
  POST   /_sim/kill            {"instances":["i-..."]}: the machines die at once
  POST   /_sim/reserve         {"type":"m5.large","zone":"us-east-1a","count":3,"targeted":true,"block":false,"tags":{}}:
                               a capacity reservation; answers its id
  POST   /_sim/image           {"name":"...","arch":"x86_64","owner":"210987654321","public":false,"shared":true,"tags":{},
                               "created":"2026-01-31T12:00:00Z","deprecated":"...","bootMode":"uefi","noENA":false,"rootGiB":20}:
                               an image of this account or, with "owner", of another; answers its id
  POST   /_sim/parameter       {"name":"/team/image","value":"ami-..."}: a parameter in Systems Manager
  POST   /_sim/pods            {"instances":["i-..."],"pods":40}: so many pods with addresses of their own run on them, where the
                               simulator plays the VPC CNI plugin
  POST   /_sim/reset           back to the empty account, without faults

Faults, all optional; patterns have * and ?, durations are text like "30s", and "times" and "probability" limit how
often a fault strikes:
  {"capacity":      [{"instanceType":"m5.*","zone":"us-east-1a","capacityType":"spot","remaining":2,"code":"..."}],
   "zonesOut":      ["us-east-1b"],
   "throttle":      0.1,              EC2's published request buckets, times this; 0 turns throttling off
   "errors":        [{"action":"Describe*","code":"InternalError","message":"...","status":500,"times":3}],
   "fleet":         [{"zone":"us-east-1a","code":"InternalError","times":1}],   the answer of a fleet says it of its pools;
                                     without a code they give nothing, and it does not say why
  "templateLag":   "5s",             launches learn of launch templates this late; with "profileLag", "groupLag" and "imageLag"
                                     of instance profiles, security groups and images; with "tagLag" Describe calls of tags
  "inFlight":      "...",            code for a token whose first request is still being answered; "" gives the same answer
  "lost":          [{"action":"CreateFleet","times":1}],         done, but the answer never arrives
   "slow":          [{"action":"*","delay":"2s","probability":0.5}],
                     {"service":"pricing","delay":"10m"} hangs
   "describeLag":   "30s",            Describe calls learn of launches and ends this late
   "neverRegister": [{"instanceType":"c5.*","times":1}],          booted, but no Node appears
   "neverReady":    [{"zone":"us-east-1c"}],
   "die":           [{"after":"45s","probability":0.1}],
   "noRoles":       ["nodes-*"],      there are no such IAM roles
   "freeAddresses": {"subnet-...":3}}
`
