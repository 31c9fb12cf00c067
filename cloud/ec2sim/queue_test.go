package ec2sim_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func TestQueues(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	client := a.sqs()
	_, err := client.GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("tenon")})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue")
	if _, err := client.CreateQueue(ctx(t), &sqs.CreateQueueInput{QueueName: aws.String("tenon")}); err != nil {
		t.Fatal(err)
	}
	q, err := client.GetQueueUrl(ctx(t), &sqs.GetQueueUrlInput{QueueName: aws.String("tenon")})
	if err != nil {
		t.Fatal(err)
	}
	receive := func(wait int32) []sqstypes.Message {
		t.Helper()
		out, err := client.ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{
			QueueUrl: q.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: wait, VisibilityTimeout: 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Messages
	}
	if got := receive(0); len(got) != 0 {
		t.Errorf("an empty queue gave %+v", got)
	}
	arrived := make(chan []sqstypes.Message)
	go func() { // a long poll, which must get the message whether it starts before or after the send
		out, err := client.ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 20, VisibilityTimeout: 20})
		if err != nil {
			t.Error(err)
			close(arrived)
			return
		}
		arrived <- out.Messages
	}()
	if _, err := client.SendMessage(ctx(t), &sqs.SendMessageInput{QueueUrl: q.QueueUrl, MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	messages := <-arrived
	if len(messages) != 1 || *messages[0].Body != "hello" {
		t.Fatalf("messages: %+v", messages)
	}
	if got := receive(0); len(got) != 0 {
		t.Error("a message that is being worked on was given out again")
	}
	a.clock.Advance(21 * time.Second)
	again := receive(0)
	if len(again) != 1 {
		t.Fatal("a message that nobody deleted did not come back")
	}
	attributes, err := client.GetQueueAttributes(ctx(t), &sqs.GetQueueAttributesInput{QueueUrl: q.QueueUrl, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil || attributes.Attributes["ApproximateNumberOfMessagesNotVisible"] != "1" {
		t.Errorf("attributes: %+v, %v", attributes, err)
	}
	done, err := client.DeleteMessageBatch(ctx(t), &sqs.DeleteMessageBatchInput{QueueUrl: q.QueueUrl, Entries: []sqstypes.DeleteMessageBatchRequestEntry{
		{Id: aws.String("1"), ReceiptHandle: again[0].ReceiptHandle},
	}})
	if err != nil || len(done.Successful) != 1 {
		t.Errorf("delete: %+v, %v", done, err)
	}
	if _, err := client.DeleteMessage(ctx(t), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl, ReceiptHandle: again[0].ReceiptHandle}); err != nil {
		t.Errorf("deleting a message that is gone: %v", err)
	}
	a.clock.Advance(time.Hour)
	if got := receive(0); len(got) != 0 {
		t.Errorf("a deleted message came back: %+v", got)
	}
}
