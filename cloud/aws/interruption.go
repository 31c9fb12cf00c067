package aws

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/tenon-sh/tenon/cloud"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// These are Karpenter's numbers for reading the queue. Ten messages and twenty seconds are the most SQS allows.
const (
	noticesAtOnce     = 10
	noticeWaitSeconds = 20
	// noticeHiddenSeconds is how long a received message stays hidden from other receivers. If it is not deleted by
	// then, it is delivered again.
	noticeHiddenSeconds = 20
)

var queueName = regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}$`)

// ValidQueue reports whether a text is the name or the URL of an SQS queue.
func ValidQueue(queue string) bool {
	return queueName.MatchString(queue) || isQueueURL(queue) && queueName.MatchString(queue[strings.LastIndexByte(queue, '/')+1:])
}

func isQueueURL(queue string) bool {
	return strings.HasPrefix(queue, "https://") || strings.HasPrefix(queue, "http://")
}

// Interruptions reads what AWS announces about instances: from an SQS queue into which EventBridge puts the events of
// EC2 and AWS Health, and from EC2's status checks. Both report all instances of the account, whoever owns them.
// Interruptions remembers nothing but the queue's URL.
type Interruptions struct {
	*Provider
	api   *sqs.Client
	queue string

	mu  sync.Mutex
	url string
}

// Interruptions returns the reader of AWS's announcements that uses the queue with this name or URL. Without a queue it
// has only the status checks.
func (p *Provider) Interruptions(queue string) *Interruptions {
	return &Interruptions{Provider: p, api: p.sqs, queue: queue}
}

// Queue returns the name or URL of the queue, "" if there is none.
func (i *Interruptions) Queue() string { return i.queue }

// Receive returns the next notices, at most ten, and waits up to twenty seconds for the first. A notice that is not
// deleted within twenty seconds is delivered again.
func (i *Interruptions) Receive(ctx context.Context) ([]cloud.Notice, error) {
	url, err := i.queueURL(ctx)
	if err != nil {
		return nil, err
	}
	out, err := i.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: noticesAtOnce, WaitTimeSeconds: noticeWaitSeconds, VisibilityTimeout: noticeHiddenSeconds,
	})
	if err != nil {
		return nil, i.failed("ReceiveMessage", err)
	}
	notices := make([]cloud.Notice, len(out.Messages))
	for n := range out.Messages {
		notice := cloud.Notice{Receipt: aws.ToString(out.Messages[n].ReceiptHandle)}
		notice.Interruption, notice.Err = parseInterruption(aws.ToString(out.Messages[n].Body))
		notices[n] = notice
	}
	return notices, nil
}

// Delete acknowledges notices. The error contains one error for each notice or batch of notices that was not deleted;
// those notices are delivered again.
func (i *Interruptions) Delete(ctx context.Context, receipts []string) error {
	url, err := i.queueURL(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for batch := range slices.Chunk(receipts, noticesAtOnce) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(url)}
		for n, receipt := range batch {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(n)), ReceiptHandle: aws.String(receipt)})
		}
		out, err := i.api.DeleteMessageBatch(ctx, in)
		if err != nil {
			failed = append(failed, i.failed("DeleteMessageBatch", err))
			continue
		}
		for _, entry := range out.Failed {
			failed = append(failed, fmt.Errorf("DeleteMessageBatch: %s: %s", aws.ToString(entry.Code), aws.ToString(entry.Message)))
		}
	}
	return errors.Join(failed...)
}

// Shun marks an offering as unavailable for three minutes, as if a launch had been refused, because EC2 is taking its
// capacity back.
func (p *Provider) Shun(key cloud.OfferingKey) {
	p.catalogue.unavailable.markOffering(key)
	if key.CapacityType == karpv1.CapacityTypeReserved && key.ReservationID != "" {
		p.catalogue.reservations.full(key.ReservationID)
	}
}

// queueURL returns the URL of the queue, and asks SQS for it only once.
func (i *Interruptions) queueURL(ctx context.Context) (string, error) {
	if isQueueURL(i.queue) {
		return i.queue, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.url != "" {
		return i.url, nil
	}
	out, err := i.api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(i.queue)})
	if err != nil {
		return "", i.failed("GetQueueUrl", err)
	}
	i.url = aws.ToString(out.QueueUrl)
	return i.url, nil
}

func (i *Interruptions) failed(operation string, err error) error {
	return fmt.Errorf("queue %s: %w", i.queue, classify(operation, err))
}
