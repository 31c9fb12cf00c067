package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// callAgain is the pause between two tries of a call.
	callAgain = 2 * time.Second
	// maxAnswer bounds how much of an answer is read, in bytes, and maxQuoted how much of it an error quotes.
	maxAnswer, maxQuoted = 4096, 200
)

// call posts a document until the answer is a success, or a refusal that will not change.
func (r *Runner) call(ctx context.Context, address string, about About) error {
	body, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	for {
		again, err := r.post(ctx, address, about.key(), body)
		if err == nil || !again {
			return err
		}
		select {
		case <-time.After(callAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// post sends the document once, and says whether it is worth trying again: not if the server refuses what it is told.
func (r *Runner) post(ctx context.Context, address, key string, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("call %s: %w", address, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := r.http.Do(request)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			return false, fmt.Errorf("call %s: %w", address, cause)
		}
		return true, fmt.Errorf("call: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return true, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if response.StatusCode/100 == 2 {
		return false, nil
	}
	refused := response.StatusCode/100 == 4 && response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusRequestTimeout
	return !refused, fmt.Errorf("%s answers %s: %.*q", address, response.Status, maxQuoted, answer)
}
