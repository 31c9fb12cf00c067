#!/bin/sh
# Creates the node role, the worker's role and its policies with the AWS CLI, for the cluster CLUSTER_NAME in AWS_REGION. The README beside
# this file says what each policy allows. AWS_PARTITION (aws) and TENON_NAMESPACE (kube-system) have defaults. Needs envsubst.
set -eu

: "${CLUSTER_NAME:?the name of the EKS cluster}" "${AWS_REGION:?the region of the cluster}"
export AWS_PARTITION="${AWS_PARTITION:-aws}" TENON_NAMESPACE="${TENON_NAMESPACE:-kube-system}" CLUSTER_NAME AWS_REGION
cd "$(dirname "$0")"
AWS_ACCOUNT_ID=$(aws sts get-caller-identity --query Account --output text)
issuer=$(aws eks describe-cluster --name "$CLUSTER_NAME" --query cluster.identity.oidc.issuer --output text)
OIDC_ISSUER=${issuer#https://}
export AWS_ACCOUNT_ID OIDC_ISSUER
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT

# The node role, and its access entry in the cluster.
aws iam create-role --role-name "KarpenterNodeRole-$CLUSTER_NAME" --assume-role-policy-document file://node-trust.json
for policy in AmazonEKSWorkerNodePolicy AmazonEKS_CNI_Policy AmazonEC2ContainerRegistryPullOnly AmazonSSMManagedInstanceCore; do
	aws iam attach-role-policy --role-name "KarpenterNodeRole-$CLUSTER_NAME" --policy-arn "arn:$AWS_PARTITION:iam::aws:policy/$policy"
done
aws eks create-access-entry --cluster-name "$CLUSTER_NAME" --type EC2_LINUX \
	--principal-arn "arn:$AWS_PARTITION:iam::$AWS_ACCOUNT_ID:role/KarpenterNodeRole-$CLUSTER_NAME"

# Spot capacity needs EC2's service-linked role. In an account that already has it, the error is harmless.
aws iam create-service-linked-role --aws-service-name spot.amazonaws.com || true

# The worker's role.
envsubst < controller-trust-irsa.json > "$files/trust.json"
aws iam create-role --role-name "TenonController-$CLUSTER_NAME" --assume-role-policy-document "file://$files/trust.json"
for policy in node-lifecycle instance-profiles discovery interruption; do
	envsubst < $policy.json > "$files/$policy.json"
	arn=$(aws iam create-policy --policy-name "Tenon-$policy-$CLUSTER_NAME" --policy-document "file://$files/$policy.json" --query Policy.Arn --output text)
	aws iam attach-role-policy --role-name "TenonController-$CLUSTER_NAME" --policy-arn "$arn"
done
