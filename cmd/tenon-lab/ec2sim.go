package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cmd/internal/program"
)

// newEC2SimCommand runs a simulated AWS account as a process.
func newEC2SimCommand() *cobra.Command {
	opts := ec2sim.Options{}
	var kubeconfig, policies string
	cmd := &cobra.Command{
		Use:   "ec2sim",
		Short: "Simulate an AWS account over HTTP",
		Long: `Simulates an AWS account over HTTP: EC2, EC2 Auto Scaling, SSM, IAM, EKS, Pricing, SQS and STS, as far as a node autoscaler uses them.
Point any AWS SDK or the AWS CLI at it with AWS_ENDPOINT_URL and any credentials.

With --kubeconfig, an instance that boots joins that cluster as a Node, as its kubelet would.

With --policies, callers are limited to IAM policies: POLICIES/worker/launch.json is one of whoever signs with the access
key "worker". Access keys without a directory may do everything.

` + ec2sim.ControlHelp,
		Example: `  tenon-lab ec2sim --listen 127.0.0.1:4566 --state /tmp/sim/state --kubeconfig $KUBECONFIG --cluster tenon
  AWS_ENDPOINT_URL=http://127.0.0.1:4566 aws ec2 describe-instances
  tenon-lab ec2sim --policies /tmp/policies   # and AWS_ACCESS_KEY_ID=worker for /tmp/policies/worker/*.json
  curl -X PUT 127.0.0.1:4566/_sim/faults -d '{"capacity":[{"instanceType":"m5.*","zone":"us-east-1a"}]}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			log, err := zap.NewProduction()
			if err != nil {
				return fmt.Errorf("logger: %w", err)
			}
			opts.Log = log
			if policies != "" {
				if opts.Policies, err = ec2sim.LoadPolicies(policies); err != nil {
					return err
				}
			}
			if err := joinCluster(&opts, kubeconfig); err != nil {
				return err
			}
			sim, err := ec2sim.New(opts)
			if err != nil {
				return err
			}
			if err := sim.Start(); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), sim.URL())
			<-cmd.Context().Done()
			return sim.Close()
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Listen, "listen", "127.0.0.1:4566", "address to listen on; port 0 picks a free one, and the URL is printed")
	f.StringVar(&opts.StateFile, "state", "", "file that keeps the account over restarts; empty keeps nothing")
	f.StringVar(&kubeconfig, "kubeconfig", "", "cluster that instances join; empty: none do")
	f.StringVar(&policies, "policies", "", "directory of IAM policies, ACCESS-KEY/NAME.json; empty: everybody may do everything")
	f.StringVar(&opts.Cluster, "cluster", "tenon", "name of the EKS cluster, and value of the discovery tags")
	f.StringVar(&opts.Region, "region", "us-east-1", "region to simulate; prices are those of us-east-1")
	f.StringSliceVar(&opts.Zones, "zones", nil, "availability zones (default a, b and c of the region)")
	f.BoolVar(&opts.IPv6, "ipv6", false, "simulate an IPv6 cluster: subnets have IPv6 blocks, and services have only IPv6 addresses")
	f.StringSliceVar(&opts.Queues, "queue", nil, "SQS queues to have from the start; every event is delivered to all queues")
	f.StringVar(&opts.CatalogueFile, "catalogue", "", "JSON file of instance types to use instead of the built-in ones")
	f.StringVar(&opts.KubernetesVersion, "kubernetes-version", "1.36", "version that EKS reports for the cluster")
	f.DurationVar(&opts.BootDelay, "boot-delay", 10*time.Second, "time from launch until the kubelet registers")
	f.DurationVar(&opts.ReadyDelay, "ready-delay", 5*time.Second, "time from registration until the Node is Ready")
	return cmd
}

// joinCluster connects the simulator to the cluster of a kubeconfig file.
func joinCluster(opts *ec2sim.Options, kubeconfig string) error {
	if kubeconfig == "" {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	opts.Kubernetes, opts.ClusterEndpoint, opts.ClusterCA = client, config.Host, config.CAData
	return nil
}
