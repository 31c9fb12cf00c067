module github.com/aws/karpenter-core

go 1.26.5

require (
	k8s.io/api v0.30.3
	k8s.io/apimachinery v0.30.3
)
