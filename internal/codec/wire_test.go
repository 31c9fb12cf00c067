package codec

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	nexuspb "go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// send has an interceptor send a request; answer is what the server does with it.
func send(t *testing.T, c *Codec, method string, request, reply proto.Message, answer func(sent, reply proto.Message) error) error {
	t.Helper()
	interceptor, err := Interceptor(c, c.Encrypts())
	if err != nil {
		t.Fatal(err)
	}
	return interceptor(t.Context(), method, request, reply, nil, func(_ context.Context, _ string, sent, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		return answer(sent.(proto.Message), reply.(proto.Message))
	})
}

// TestRequestsAreSentAgain sends a request three times, as the SDK does while a server does not answer. Each time its payloads
// are encrypted once, and the SDK's own copy stays as it is, since the SDK may use parts of it for other requests.
func TestRequestsAreSentAgain(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a"), "a")
	details := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("details")}}}
	request := &workflowservice.RespondActivityTaskFailedRequest{LastHeartbeatDetails: details,
		Failure: &failurepb.Failure{Message: "a message", StackTrace: "a trace", Cause: &failurepb.Failure{Message: "a cause"}}}
	before := proto.CloneOf(request)
	for range 3 {
		var sent *workflowservice.RespondActivityTaskFailedRequest
		err := send(t, c, workflowservice.WorkflowService_RespondActivityTaskFailed_FullMethodName, request, &workflowservice.RespondActivityTaskFailedResponse{}, func(message, _ proto.Message) error {
			sent = message.(*workflowservice.RespondActivityTaskFailedRequest)
			return status.Error(codes.Unavailable, "try again")
		})
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		if !proto.Equal(request, before) {
			t.Fatalf("the SDK's request has become %v", request)
		}
		message, err := proto.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"details", "a message", "a trace", "a cause"} {
			if bytes.Contains(message, []byte(text)) {
				t.Errorf("%q is sent in clear: %s", text, message)
			}
		}
		once, err := c.Decode(sent.GetLastHeartbeatDetails().GetPayloads())
		if err != nil || !equal(once, details.GetPayloads()) {
			t.Errorf("what was encrypted once is decrypted to %v, %v", once, err)
		}
	}
}

// TestNexusTasksStayInClear shows that what the server asks of the SDK itself is left alone: the server has no key.
func TestNexusTasksStayInClear(t *testing.T) {
	t.Parallel()
	c := newCodec(t, directory(t, "a"), "a")
	request := &workflowservice.RespondNexusTaskCompletedRequest{Response: &nexuspb.Response{Variant: &nexuspb.Response_StartOperation{StartOperation: &nexuspb.StartOperationResponse{
		Variant: &nexuspb.StartOperationResponse_SyncSuccess{SyncSuccess: &nexuspb.StartOperationResponse_Sync{Payload: &commonpb.Payload{Data: []byte("done")}}}}}}}
	err := send(t, c, workflowservice.WorkflowService_RespondNexusTaskCompleted_FullMethodName, request, &workflowservice.RespondNexusTaskCompletedResponse{}, func(sent, _ proto.Message) error {
		if !proto.Equal(sent, request) {
			t.Errorf("sent is %v", sent)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOldHistoriesAreRead has every recorded history of the workflows' tests read by a worker with the codec on: in clear, as
// workers without the codec have written them, and encrypted. Both are what was recorded.
func TestOldHistoriesAreRead(t *testing.T) {
	t.Parallel()
	recorded, err := filepath.Glob(filepath.Join("..", "..", "workflows", "testdata", "histories", "*.json.gz"))
	if err != nil || len(recorded) < 10 {
		t.Fatalf("%d histories, %v", len(recorded), err)
	}
	c := newCodec(t, directory(t, "a"), "a")
	for _, path := range recorded {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		history, err := client.HistoryFromJSON(unpacked, client.HistoryJSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := &workflowservice.GetWorkflowExecutionHistoryResponse{History: history}
		// A history that is sent is encrypted as the requests are from which the server made it.
		var kept *workflowservice.GetWorkflowExecutionHistoryResponse
		if err := send(t, c, "any", want, &workflowservice.GetWorkflowExecutionHistoryResponse{}, func(sent, _ proto.Message) error {
			kept = sent.(*workflowservice.GetWorkflowExecutionHistoryResponse)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if first := kept.GetHistory().GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads(); len(first) > 0 && !encrypted(first[0]) {
			t.Errorf("%s: the input is kept in clear", filepath.Base(path))
		}
		for how, kept := range map[string]proto.Message{"in clear": want, "encrypted": kept} {
			got := &workflowservice.GetWorkflowExecutionHistoryResponse{}
			if err := send(t, c, workflowservice.WorkflowService_GetWorkflowExecutionHistory_FullMethodName, &workflowservice.GetWorkflowExecutionHistoryRequest{}, got, func(_, reply proto.Message) error {
				proto.Merge(reply, kept)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for i, event := range got.GetHistory().GetEvents() {
				forgetEncoded(event.ProtoReflect())
				if was := want.GetHistory().GetEvents()[i]; !proto.Equal(event, was) {
					t.Fatalf("%s, kept %s, event %d: %v became %v", strings.TrimSuffix(filepath.Base(path), ".json.gz"), how, i+1, was, event)
				}
			}
		}
	}
}

// forgetEncoded removes from failures what their texts were decoded from.
func forgetEncoded(message protoreflect.Message) {
	if failure, is := message.Interface().(*failurepb.Failure); is {
		failure.EncodedAttributes = nil
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		switch {
		case field.IsList() && !field.IsMap():
			for i := range value.List().Len() {
				forgetEncoded(value.List().Get(i).Message())
			}
		case !field.IsMap():
			forgetEncoded(value.Message())
		}
		return true
	})
}
