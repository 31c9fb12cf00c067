# The queue through which AWS tells Tenon that instances are taken away, and the EventBridge rules that fill it.
# events.json and queue-policy.json say what they are; README.md says how to make the same without Terraform.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "cluster_name" {
  description = "Name of the EKS cluster. The queue gets the same name, and each rule a name that begins with it."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,37}$", var.cluster_name))
    error_message = "The names of EventBridge rules have at most 64 characters, which leaves 38 for the cluster's."
  }
}

variable "tags" {
  description = "Further tags of the queue and the rules."
  type        = map(string)
  default     = {}
}

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  events = jsondecode(file("${path.module}/events.json"))
  # tenon cleanup recognises the queue and the rules of a deleted cluster by this tag.
  tags = merge(var.tags, { "tenon.sh/cluster" = var.cluster_name })
}

resource "aws_sqs_queue" "interruption" {
  name = var.cluster_name
  # A worker that was away for an hour still learns what has happened.
  message_retention_seconds = 3600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue_policy" "interruption" {
  queue_url = aws_sqs_queue.interruption.url
  policy = templatefile("${path.module}/queue-policy.json", {
    AWS_PARTITION  = data.aws_partition.current.partition
    AWS_REGION     = data.aws_region.current.name
    AWS_ACCOUNT_ID = data.aws_caller_identity.current.account_id
    CLUSTER_NAME   = var.cluster_name
  })
}

resource "aws_cloudwatch_event_rule" "interruption" {
  for_each      = local.events
  name          = "${var.cluster_name}-${each.key}"
  description   = "Tenon: ${each.key} for the cluster ${var.cluster_name}"
  event_pattern = jsonencode(each.value)
  tags          = local.tags
}

resource "aws_cloudwatch_event_target" "interruption" {
  for_each  = local.events
  rule      = aws_cloudwatch_event_rule.interruption[each.key].name
  target_id = "interruption-queue"
  arn       = aws_sqs_queue.interruption.arn
}

output "queue_name" {
  description = "The value of the chart's settings.interruptionQueue."
  value       = aws_sqs_queue.interruption.name
}
