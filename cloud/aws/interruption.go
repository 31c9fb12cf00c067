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

// How the queue is read: Karpenter's own numbers. Ten messages and twenty seconds are the most SQS allows.
const (
	noticesAtOnce     = 10
	noticeWaitSeconds = 20
	// noticeHiddenSeconds is how long a message that was received stays hidden from other receivers: whoever handles it
	// has that long until it comes again.
	noticeHiddenSeconds = 20
)

var queueName = regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}$`)

// ValidQueue says whether a text names an SQS queue, by its name or its URL.
func ValidQueue(queue string) bool {
	return queueName.MatchString(queue) || isQueueURL(queue) && queueName.MatchString(queue[strings.LastIndexByte(queue, '/')+1:])
}

func isQueueURL(queue string) bool {
	return strings.HasPrefix(queue, "https://") || strings.HasPrefix(queue, "http://")
}

// Interruptions is what AWS announces about instances: through an SQS queue that EventBridge puts EC2's and AWS Health's
// events into, and through the status checks EC2 makes of every instance. Both tell of all instances of the account,
// whoever they belong to. It remembers nothing but the queue's URL.
type Interruptions struct {
	*Provider
	api   *sqs.Client
	queue string

	mu  sync.Mutex
	url string
}

// Interruptions returns what AWS announces, with the messages of the queue of that name or URL. Without a queue there are
// only the status checks.
func (p *Provider) Interruptions(queue string) *Interruptions {
	return &Interruptions{Provider: p, api: p.sqs, queue: queue}
}

// Queue is the name or URL of the queue, empty where there is none.
func (i *Interruptions) Queue() string { return i.queue }

// Receive returns the next notices, at most ten, waiting up to twenty seconds for the first. A notice that is not
// deleted within twenty seconds comes again.
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

// Delete acknowledges notices. The error names those that were not deleted and will come again.
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

// Shun leaves an offering alone for three minutes, as if a launch had been refused: EC2 takes its capacity back there.
func (p *Provider) Shun(key cloud.OfferingKey) {
	p.catalogue.unavailable.markOffering(key)
	if key.CapacityType == karpv1.CapacityTypeReserved && key.ReservationID != "" {
		p.catalogue.reservations.full(key.ReservationID)
	}
}

// queueURL looks the queue up once.
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
