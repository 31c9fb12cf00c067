"""Drives the simulated AWS account at an address with boto3, and prints what boto3 makes of its answers as JSON.

    python3 boto.py ENDPOINT CLUSTER

What it prints is judged by the Go test that starts it: it knows the account.
"""

import copy
import json
import os
import sys
import urllib.request

import boto3
import botocore
import botocore.config
import botocore.exceptions
import botocore.loaders
import botocore.session

from strict import Strict

ENDPOINT, CLUSTER = sys.argv[1], sys.argv[2]
AMI = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
QUEUE = CLUSTER
strict = Strict()


class Loader(botocore.loaders.Loader):
    """The loader of botocore, with the model of one service changed."""

    def __init__(self, service, change):
        super().__init__(include_default_search_paths=True)
        self.service, self.change = service, change

    def load_service_model(self, service_name, type_name, api_version=None):
        model = super().load_service_model(service_name, type_name, api_version)
        if service_name == self.service and type_name == "service-2":
            model = self.change(copy.deepcopy(model))
        return model


def as_query(model):
    """SQS as botocore had it until November 2023. A newer model has lost the names of that protocol, and gets them again."""
    if model["metadata"]["protocol"] == "query":
        return model
    shapes = model["shapes"]
    for shape, name in {"AttributeNameList": "AttributeName", "MessageAttributeNameList": "MessageAttributeName",
                        "MessageSystemAttributeList": "MessageSystemAttributeName", "MessageList": "Message",
                        "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
                        "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
                        "BatchResultErrorEntryList": "BatchResultErrorEntry"}.items():
        shapes[shape].update(flattened=True)
        shapes[shape]["member"]["locationName"] = name
    for shape in ("QueueAttributeMap", "MessageSystemAttributeMap", "MessageBodyAttributeMap"):
        shapes[shape].update(flattened=True)
        shapes[shape]["key"]["locationName"], shapes[shape]["value"]["locationName"] = "Name", "Value"
    for shape in ("GetQueueAttributesResult", "Message"):
        shapes[shape]["members"]["Attributes"]["locationName"] = "Attribute"
    for shape in ("SendMessageRequest", "Message"):
        shapes[shape]["members"]["MessageAttributes"]["locationName"] = "MessageAttribute"
    for operation in model["operations"].values():
        if "output" in operation:
            operation["output"]["resultWrapper"] = operation["output"]["shape"]
    for key in ("jsonVersion", "targetPrefix", "awsQueryCompatible", "protocols"):
        model["metadata"].pop(key, None)
    model["metadata"].update(protocol="query", xmlNamespace="http://queue.amazonaws.com/doc/2012-11-05/")
    return model


def as_json(model):
    """SQS as botocore has it since November 2023: the same shapes without the names of the query protocol."""

    def strip(node):
        if isinstance(node, dict):
            node.pop("flattened", None)
            if isinstance(node.get("locationName"), str):
                node.pop("locationName")
            for inner in node.values():
                strip(inner)
        elif isinstance(node, list):
            for inner in node:
                strip(inner)

    strip(model["shapes"])
    for operation in model["operations"].values():
        operation.get("output", {}).pop("resultWrapper", None)
    model["metadata"].update(protocol="json", jsonVersion="1.0", targetPrefix="AmazonSQS")
    return model


def client(service, key="somebody", change=None):
    core = botocore.session.get_session()
    if change:
        core.register_component("data_loader", Loader(service, change))
    session = boto3.Session(aws_access_key_id=key, aws_secret_access_key="secret", region_name="us-east-1", botocore_session=core)
    config = botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=60)
    return strict.attach(session.client(service, endpoint_url=ENDPOINT, config=config))


def control(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ENDPOINT + "/_sim/" + path, data=data, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def code(call, **parameters):
    """The error code of a call that is to be refused, and its HTTP status."""
    try:
        call(**parameters)
    except botocore.exceptions.ClientError as e:
        return "%s %d" % (e.response["Error"]["Code"], e.response["ResponseMetadata"]["HTTPStatusCode"])
    except botocore.exceptions.ParamValidationError:
        return "refused by the client"
    return "done"


def pages(ec2, operation, key, **parameters):
    """All items of a paginated call, and the number of its pages."""
    found = list(ec2.get_paginator(operation).paginate(**parameters))
    return [item for page in found for item in page[key]], len(found)


def read(out, ec2, ssm, eks, pricing, sts):
    """What is there from the start."""
    types, out["typePages"] = pages(ec2, "describe_instance_types", "InstanceTypes", PaginationConfig={"PageSize": 100})
    out["types"] = {t["InstanceType"]: t for t in types}
    by_filter, _ = pages(ec2, "describe_instance_types", "InstanceTypes", Filters=[
        {"Name": "processor-info.supported-architecture", "Values": ["arm64"]}, {"Name": "bare-metal", "Values": ["true"]}])
    out["armMetal"] = [t["InstanceType"] for t in by_filter]
    offerings, _ = pages(ec2, "describe_instance_type_offerings", "InstanceTypeOfferings", LocationType="availability-zone", Filters=[
        {"Name": "instance-type", "Values": ["m5.large"]}])
    out["offerings"] = [o["Location"] for o in offerings]
    out["image"] = ssm.get_parameter(Name=AMI)["Parameter"]
    out["imageParameters"] = [p["Name"] for page in ssm.get_paginator("get_parameters_by_path").paginate(
        Path="/aws/service/eks/optimized-ami/1.36", Recursive=True, PaginationConfig={"PageSize": 5}) for p in page["Parameters"]]
    found = ssm.get_parameters(Names=[AMI, "/none"])
    out["someParameters"] = {"found": [p["Name"] for p in found["Parameters"]], "invalid": found["InvalidParameters"]}
    out["images"] = ec2.describe_images(Owners=["amazon"], Filters=[
        {"Name": "image-id", "Values": [out["image"]["Value"]]}, {"Name": "architecture", "Values": ["x86_64"]}])["Images"]
    subnets, _ = pages(ec2, "describe_subnets", "Subnets", Filters=[{"Name": "tag:karpenter.sh/discovery", "Values": [CLUSTER]}])
    out["subnets"] = {s["AvailabilityZone"]: s["SubnetId"] for s in subnets}
    groups, _ = pages(ec2, "describe_security_groups", "SecurityGroups", Filters=[
        {"Name": "tag:karpenter.sh/discovery", "Values": [CLUSTER]}])
    out["groups"] = [g["GroupId"] for g in groups]
    out["zones"] = {z["ZoneName"]: z["ZoneId"] for z in ec2.describe_availability_zones()["AvailabilityZones"]}
    out["vpcs"] = [v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"]]
    out["placementGroups"] = ec2.describe_placement_groups()["PlacementGroups"]
    history, out["pricePages"] = pages(ec2, "describe_spot_price_history", "SpotPriceHistory", InstanceTypes=["m5.large", "c5.large"],
                                       ProductDescriptions=["Linux/UNIX"], PaginationConfig={"PageSize": 2})
    out["spotPrices"] = [{"type": p["InstanceType"], "zone": p["AvailabilityZone"], "price": float(p["SpotPrice"])} for p in history]
    eks.get_waiter("cluster_active").wait(name=CLUSTER)
    out["cluster"] = eks.describe_cluster(name=CLUSTER)["cluster"]
    products = [json.loads(p) for page in pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=[
            {"Type": "TERM_MATCH", "Field": f, "Value": v} for f, v in {
                "regionCode": "us-east-1", "instanceType": "m5.large", "operatingSystem": "Linux", "tenancy": "Shared",
                "preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand"}.items()]) for p in page["PriceList"]]
    out["onDemand"] = [float(dimension["pricePerUnit"]["USD"]) for p in products for term in p["terms"]["OnDemand"].values()
                       for dimension in term["priceDimensions"].values()]
    out["caller"] = {k: v for k, v in sts.get_caller_identity().items() if k != "ResponseMetadata"}


def profiles(out, iam):
    """An instance profile from its making to its end."""
    name, tags = "clients", [{"Key": "cluster", "Value": CLUSTER}]
    out["profileMissing"] = code(iam.get_instance_profile, InstanceProfileName=name)
    made = iam.create_instance_profile(InstanceProfileName=name, Path="/tenon/", Tags=tags)["InstanceProfile"]
    out["profileTwice"] = code(iam.create_instance_profile, InstanceProfileName=name, Path="/tenon/")
    iam.get_waiter("instance_profile_exists").wait(InstanceProfileName=name)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="node")
    iam.tag_instance_profile(InstanceProfileName=name, Tags=[{"Key": "more", "Value": "x"}])
    out["profileInUse"] = code(iam.delete_instance_profile, InstanceProfileName=name)
    out["profile"] = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    listed = [p for page in iam.get_paginator("list_instance_profiles").paginate(PathPrefix="/tenon/", PaginationConfig={"PageSize": 1})
              for p in page["InstanceProfiles"]]
    out["profilesListed"] = [p["InstanceProfileName"] for p in listed]
    out["role"] = iam.get_role(RoleName="node")["Role"]["Arn"]
    iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName="node")
    iam.delete_instance_profile(InstanceProfileName=name)
    out["profileEnded"] = code(iam.get_instance_profile, InstanceProfileName=name)
    out["profileID"] = made["InstanceProfileId"]


def fleet_of(ec2, kind, count, overrides, token):
    answer = ec2.create_fleet(
        Type="instant", ClientToken=token,
        LaunchTemplateConfigs=[{"LaunchTemplateSpecification": {"LaunchTemplateName": "clients", "Version": "$Latest"}, "Overrides": overrides}],
        TargetCapacitySpecification={"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind},
        TagSpecifications=[{"ResourceType": t, "Tags": [{"Key": "group", "Value": token}]} for t in ("instance", "fleet")])
    answer.pop("ResponseMetadata")
    return answer


def launch(out, ec2):
    """Instances from their template to their end."""
    made = ec2.create_launch_template(
        LaunchTemplateName="clients", VersionDescription="first",
        LaunchTemplateData={
            "ImageId": out["image"]["Value"], "SecurityGroupIds": out["groups"], "UserData": "I2Nsb3VkLWNvbmZpZwo=",
            "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 30, "VolumeType": "gp3", "Encrypted": True}}],
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "disk", "Value": "root"}]}]},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "owner", "Value": "clients"}]}])["LaunchTemplate"]
    listed, _ = pages(ec2, "describe_launch_templates", "LaunchTemplates", Filters=[{"Name": "tag:owner", "Values": ["clients"]}])
    versions, _ = pages(ec2, "describe_launch_template_versions", "LaunchTemplateVersions", LaunchTemplateId=made["LaunchTemplateId"])
    out["template"] = {"made": made, "listed": listed, "versions": versions}

    zone = sorted(out["subnets"])[0]
    control("PUT", "faults", {"capacity": [{"instanceType": "m5.large", "zone": zone, "capacityType": "on-demand", "remaining": 7}]})
    override = {"InstanceType": "m5.large", "SubnetId": out["subnets"][zone]}
    out["partial"] = fleet_of(ec2, "on-demand", 9, [override], "partial")
    out["replayed"] = fleet_of(ec2, "on-demand", 9, [override], "partial")
    control("DELETE", "faults")
    out["spot"] = fleet_of(ec2, "spot", 1, [{**override, "InstanceType": t} for t in ("m5.large", "c5.large")], "spot")
    ids = [i for f in ("partial", "spot") for g in out[f]["Instances"] for i in g["InstanceIds"]]

    ec2.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    reservations, out["instancePages"] = pages(ec2, "describe_instances", "Reservations", PaginationConfig={"PageSize": 5}, Filters=[
        {"Name": "tag:group", "Values": ["partial", "spot"]}, {"Name": "instance-state-name", "Values": ["running"]}])
    out["instances"] = {i["InstanceId"]: i for r in reservations for i in r["Instances"]}
    ec2.create_tags(Resources=ids[:1], Tags=[{"Key": "Name", "Value": "<first> & 'only'"}])
    tags, _ = pages(ec2, "describe_tags", "Tags", Filters=[{"Name": "resource-id", "Values": ids[:1]}, {"Name": "key", "Values": ["Name"]}])
    out["tags"] = tags
    ec2.delete_tags(Resources=ids[:1], Tags=[{"Key": "Name"}])
    out["tagsLeft"], _ = pages(ec2, "describe_tags", "Tags", Filters=[
        {"Name": "resource-id", "Values": ids[:1]}, {"Name": "key", "Values": ["Name"]}])
    status, _ = pages(ec2, "describe_instance_status", "InstanceStatuses", InstanceIds=ids)
    out["status"] = {s["InstanceId"]: s["SystemStatus"]["Status"] for s in status}
    requests, _ = pages(ec2, "describe_spot_instance_requests", "SpotInstanceRequests")
    out["spotRequests"] = [r["InstanceId"] for r in requests]

    out["dryRun"] = code(ec2.run_instances, LaunchTemplate={"LaunchTemplateName": "clients"}, InstanceType="m5.large", MinCount=1, MaxCount=1,
                         SubnetId=override["SubnetId"], DryRun=True)
    out["ran"] = ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "clients"}, InstanceType="m5.large", MinCount=2, MaxCount=2,
                                   SubnetId=override["SubnetId"], ClientToken="ran")
    reserved = control("POST", "reserve", {"type": "m5.large", "zone": zone, "count": 3, "tags": {"owner": "clients"}})["id"]
    reservations, _ = pages(ec2, "describe_capacity_reservations", "CapacityReservations", CapacityReservationIds=[reserved])
    out["reservations"] = {"id": reserved, "seen": reservations}
    return ids


def queues(out, change, name):
    """SQS in one of its protocols."""
    sqs = client("sqs", change=change)
    missing = code(sqs.get_queue_url, QueueName="none")
    url = sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    text = "<b> & \"é\" ' " + name
    sent = sqs.send_message(QueueUrl=url, MessageBody=text, MessageAttributes={"kind": {"DataType": "String", "StringValue": "x"}})
    sqs.send_message(QueueUrl=url, MessageBody="second")
    received = []
    while len(received) < 2:
        received += sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, AttributeNames=["All"])["Messages"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn", "ApproximateNumberOfMessagesNotVisible"])["Attributes"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=received[0]["ReceiptHandle"])
    batch = sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "two", "ReceiptHandle": received[1]["ReceiptHandle"]}])
    out[name] = {
        "protocol": sqs.meta.service_model.metadata["protocol"], "missing": missing, "url": url, "text": text,
        "sentMD5": sent["MD5OfMessageBody"], "received": received, "attributes": attributes,
        "deleted": [e["Id"] for e in batch["Successful"]], "failed": batch.get("Failed", []),
        "left": sqs.receive_message(QueueUrl=url).get("Messages", []),
        "tooMany": code(sqs.receive_message, QueueUrl=url, MaxNumberOfMessages=11),
        "emptyBatch": code(sqs.delete_message_batch, QueueUrl=url, Entries=[]),
    }
    return sqs, url


def interruption(out, ec2, sqs, url, spot):
    """A spot instance that EC2 takes back: the event on the queue, then the instance's end."""
    control("POST", "interrupt", {"instances": [spot], "notice": "1s"})
    message = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"][0]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    out["event"] = json.loads(message["Body"])
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[spot], WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    ended = ec2.describe_instances(InstanceIds=[spot])["Reservations"][0]["Instances"][0]
    out["reclaimed"] = {"state": ended["State"], "reason": ended["StateReason"]["Code"]}


def end(out, ec2, ids):
    ids = ids + [i["InstanceId"] for i in out["ran"]["Instances"]]
    answer = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    out["terminating"] = {i["InstanceId"]: [i["PreviousState"]["Name"], i["CurrentState"]["Name"]] for i in answer}
    ec2.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    ended = ec2.describe_instances(InstanceIds=ids[:1])["Reservations"][0]["Instances"][0]
    out["ended"] = {"reason": ended["StateReason"]["Code"], "transition": ended["StateTransitionReason"]}
    out["templateDeleted"] = ec2.delete_launch_template(LaunchTemplateName="clients")["LaunchTemplate"]["LaunchTemplateName"]


def node_groups(out, eks, scaling):
    """Managed node groups, and Auto Scaling groups of somebody's own."""
    subnets = list(out["subnets"].values())[:2]
    for name in ("web", "batch"):
        eks.create_nodegroup(clusterName=CLUSTER, nodegroupName=name, subnets=subnets, nodeRole="arn:aws:iam::123456789012:role/nodes",
                             scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 0}, labels={"team": "shop"},
                             taints=[{"key": "team", "value": "shop", "effect": "NO_SCHEDULE"}])
    eks.get_waiter("nodegroup_active").wait(clusterName=CLUSTER, nodegroupName="web")
    listed = [name for page in eks.get_paginator("list_nodegroups").paginate(clusterName=CLUSTER, PaginationConfig={"PageSize": 1})
              for name in page["nodegroups"]]
    update = eks.update_nodegroup_config(clusterName=CLUSTER, nodegroupName="web", scalingConfig={"maxSize": 5})["update"]
    group = eks.describe_nodegroup(clusterName=CLUSTER, nodegroupName="web")["nodegroup"]
    scaling.create_auto_scaling_group(
        AutoScalingGroupName="own", MinSize=0, MaxSize=3, VPCZoneIdentifier=",".join(subnets), Tags=[{"Key": "mine", "Value": "yes"}],
        MixedInstancesPolicy={"LaunchTemplate": {"LaunchTemplateSpecification": {"LaunchTemplateName": "clients", "Version": "1"},
                                                 "Overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "c5.large"}]}})
    own = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=["own"])["AutoScalingGroups"][0]
    managed = scaling.describe_auto_scaling_groups(Filters=[{"Name": "tag:eks:nodegroup-name", "Values": ["web"]}])["AutoScalingGroups"]
    out["nodeGroups"] = {
        "listed": listed, "update": update["type"], "most": group["scalingConfig"]["maxSize"], "effect": group["taints"][0]["effect"],
        "overrides": [o["InstanceType"] for o in own["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]],
        "scaling": [g["AutoScalingGroupName"] for g in managed] == [g["name"] for g in group["resources"]["autoScalingGroups"]],
        "again": code(eks.create_nodegroup, clusterName=CLUSTER, nodegroupName="web", subnets=subnets, nodeRole="role"),
    }


def errors(out, ec2, ended):
    """What is refused, as boto3 reports it: the code and the status."""
    reader, nobody = client("ec2", key="reader"), client("iam", key="reader")
    out["errors"] = {
        "unknown instance": code(ec2.describe_instances, InstanceIds=["i-0123456789abcdef0"]),
        "no instance's id": code(ec2.terminate_instances, InstanceIds=["lt-0123"]),
        "unknown filter": code(ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}]),
        "unknown template": code(ec2.describe_launch_templates, LaunchTemplateNames=["none"]),
        "unknown image": code(ec2.describe_images, ImageIds=["ami-0123456789abcdef0"]),
        "unknown type": code(ec2.describe_instance_types, InstanceTypes=["m5.tiny"]),
        "page too small": code(ec2.describe_instances, MaxResults=1),
        "bad paging token": code(ec2.describe_instances, NextToken="x"),
        "parameter that boto3 does not know": code(ec2.describe_instances, Colour="red"),
        "value of the wrong type": code(ec2.describe_instances, MaxResults="many"),
        "no permission": code(reader.terminate_instances, InstanceIds=[ended]),
        "no permission, dry run": code(reader.create_tags, Resources=[ended], Tags=[{"Key": "a", "Value": "b"}], DryRun=True),
        "permission": code(reader.describe_subnets),
        "no permission of IAM": code(nobody.get_role, RoleName="node"),
        "no such cluster": code(client("eks").describe_cluster, name="none"),
        "no such parameter": code(client("ssm").get_parameter, Name="/none"),
    }


def main():
    out = {}
    ec2 = client("ec2")
    read(out, ec2, client("ssm"), client("eks"), client("pricing"), client("sts"))
    profiles(out, client("iam"))
    ids = launch(out, ec2)
    queues(out, as_json, "sqsJSON")
    sqs, url = queues(out, as_query, "sqsQuery")
    interruption(out, ec2, sqs, url, out["spot"]["Instances"][0]["InstanceIds"][0])
    node_groups(out, client("eks"), client("autoscaling"))
    end(out, ec2, ids)
    errors(out, ec2, ids[0])
    out["versions"] = {"boto3": boto3.__version__, "botocore": botocore.__version__, "file": os.path.dirname(botocore.__file__)}
    out["strict"] = {"answers": strict.answers, "complaints": sorted(strict.complaints)}
    json.dump(out, sys.stdout, default=lambda value: value.isoformat())


main()
