<powershell>
[string]$EKSBootstrapScriptFile = "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"
& $EKSBootstrapScriptFile -EKSClusterName 'blue' -APIServerEndpoint 'https://0123.gr7.us-east-1.eks.amazonaws.com' -Base64ClusterCA 'Q0E=' -KubeletExtraArgs '--node-labels="example.com/empty=,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=search,topology.k8s.aws/zone-id=use1-az1" --register-with-taints="karpenter.sh/unregistered:NoExecute,gpu=yes:NoSchedule,slow:PreferNoSchedule,example.com/starting:NoExecute" --max-pods=110' -DNSClusterIP '10.100.0.10'
</powershell>