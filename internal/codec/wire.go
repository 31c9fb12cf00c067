package codec

import (
	"context"
	"errors"
	"strings"

	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// wire encrypts requests and decrypts answers.
type wire struct {
	encrypts           bool
	failures, payloads grpc.UnaryClientInterceptor
}

// Interceptor returns what encrypts every payload that a connection to Temporal sends, and decrypts every one that it
// receives. Search attributes stay in clear, since Temporal searches them.
func Interceptor(codec converter.PayloadCodec, encrypts bool) (grpc.UnaryClientInterceptor, error) {
	// Messages and stack traces become payloads first, so that they are encrypted with the others.
	failures, err := converter.NewFailureGRPCClientInterceptor(converter.NewFailureGRPCClientInterceptorOptions{EncodeCommonAttributes: true})
	if err != nil {
		return nil, err
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{codec}})
	if err != nil {
		return nil, err
	}
	return wire{encrypts, failures, payloads}.intercept, nil
}

func (w wire) intercept(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	// Workers have no Nexus services of their own: such tasks are between the server, which has no key, and the SDK.
	if strings.Contains(method, "NexusTask") {
		return call(ctx, method, request, reply, connection, options...)
	}
	encoded := func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, options ...grpc.CallOption) error {
		return w.payloads(ctx, method, request, reply, connection, call, options...)
	}
	var err error
	if message, is := request.(proto.Message); w.encrypts && is {
		// The SDK sends a request again if an attempt fails, and keeps parts of it for later ones: what it has stays in clear.
		err = w.failures(ctx, method, proto.Clone(message), reply, connection, encoded, options...)
	} else {
		err = encoded(ctx, method, request, reply, connection, options...)
	}
	if unreadable, is := errors.AsType[*UnreadableError](err); is {
		return status.Error(codes.FailedPrecondition, refuse(ctx, request, reply, connection, call, unreadable).Error())
	}
	return err
}
