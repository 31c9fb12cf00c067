package codec_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tenon-sh/tenon/internal/codec"
	tenontemporal "github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/lab"
)

// secret is in everything that the workflows of these tests give Temporal.
const secret = "what-nobody-else-may-read"

// everything uses every way in which a workflow gives Temporal something to keep, and then fails.
func everything(ctx workflow.Context, in string, again bool) (string, error) {
	if err := workflow.SetQueryHandler(ctx, "ask", func(q string) (string, error) { return "answer " + in + q, nil }); err != nil {
		return "", err
	}
	if err := workflow.SetUpdateHandler(ctx, "order", func(_ workflow.Context, order string) (string, error) {
		if order != in {
			return "", errors.New("no order but " + in)
		}
		return "done " + order, nil
	}); err != nil {
		return "", err
	}
	workflow.GetVersion(ctx, "anything", workflow.DefaultVersion, 1)
	var noted string
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return in }).Get(&noted); err != nil {
		return "", err
	}
	if again {
		var signal string
		workflow.GetSignalChannel(ctx, "tell").Receive(ctx, &signal)
		return "", workflow.NewContinueAsNewError(ctx, everything, signal, false)
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Minute, Summary: in,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 2}})
	var done string
	if err := workflow.ExecuteActivity(ctx, work, in).Get(ctx, &done); err != nil {
		return "", err
	}
	workflow.SetCurrentDetails(ctx, done)
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{StaticSummary: in, Memo: map[string]any{"memo": in}})
	if err := workflow.ExecuteChildWorkflow(child, failing, done).Get(ctx, nil); err != nil {
		return "", temporal.NewNonRetryableApplicationError("failed with "+in, "Failed", err, in)
	}
	return done, nil
}

func failing(_ workflow.Context, in string) error { return errors.New("child failed with " + in) }

// work fails the first time.
func work(ctx context.Context, in string) (string, error) {
	activity.RecordHeartbeat(ctx, in)
	if activity.GetInfo(ctx).Attempt == 1 {
		return "", errors.New("tried with " + in)
	}
	return in, nil
}

// waiting waits for an activity that is somebody else's, and for a signal.
func waiting(ctx workflow.Context, in, elsewhere string) (string, error) {
	if err := workflow.SetQueryHandler(ctx, "ask", func(q string) (string, error) { return q, nil }); err != nil {
		return "", err
	}
	if elsewhere != "" {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: elsewhere, StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond}})
		if err := workflow.ExecuteActivity(ctx, work, in).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return in, nil
}

// server is a Temporal server of its own.
type server struct {
	*testing.T
	address, bin string
}

func start(t *testing.T) server {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	running, err := lab.Start(t.Context(), lab.Options{Dir: t.TempDir(), Bin: bin, Components: []lab.Component{lab.Temporal}, Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server{t, running.TemporalAddress(), bin}
}

// keys makes a directory with keys, each of which is derived from its name so that directories share keys.
func (s server) keys(ids ...string) string {
	s.Helper()
	dir := s.TempDir()
	for _, id := range ids {
		s.addKey(dir, id)
	}
	return dir
}

func (s server) addKey(dir, id string) {
	s.Helper()
	key := sha256.Sum256([]byte(id))
	if err := os.WriteFile(filepath.Join(dir, id), []byte(base64.StdEncoding.EncodeToString(key[:])), 0o600); err != nil {
		s.Fatal(err)
	}
}

// dial connects with keys, or without any.
func (s server) dial(o codec.Options) client.Client {
	s.Helper()
	c, err := codec.New(o)
	if err != nil {
		s.Fatal(err)
	}
	interceptor, err := codec.Interceptor(c, c.Encrypts())
	if err != nil {
		s.Fatal(err)
	}
	return s.connect(grpc.WithChainUnaryInterceptor(interceptor))
}

func (s server) connect(options ...grpc.DialOption) client.Client {
	s.Helper()
	connection, err := client.Dial(client.Options{HostPort: s.address, Logger: tenontemporal.NewLogger(zap.NewNop()), ConnectionOptions: client.ConnectionOptions{DialOptions: options}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(connection.Close)
	return connection
}

// work runs a worker of a queue until the test ends, or until it is stopped.
func (s server) work(c client.Client, queue string) (stop func()) {
	s.Helper()
	w := sdk.New(c, queue, sdk.Options{})
	w.RegisterWorkflow(everything)
	w.RegisterWorkflow(failing)
	w.RegisterWorkflow(waiting)
	w.RegisterActivity(work)
	if err := w.Start(); err != nil {
		s.Fatal(err)
	}
	stop = sync.OnceFunc(w.Stop)
	s.Cleanup(stop)
	return stop
}

func (s server) await(what string, done func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%s: not within a minute", what)
		}
	}
}

// temporal runs Temporal's own command.
func (s server) temporal(args ...string) string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), filepath.Join(s.bin, "temporal"), append(args, "--address", s.address)...).CombinedOutput()
	if err != nil {
		s.Fatalf("temporal %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// kept is everything that the server keeps about its workflows, as it keeps it.
func (s server) kept(raw client.Client) (texts map[string][]byte, workflows int) {
	s.Helper()
	texts = map[string][]byte{}
	page, err := raw.ListWorkflow(s.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil {
		s.Fatal(err)
	}
	add := func(name string, message proto.Message, err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		text, err := proto.Marshal(message)
		if err != nil {
			s.Fatal(err)
		}
		texts[name] = text
	}
	add("the list of workflows", page, nil)
	for _, execution := range page.GetExecutions() {
		id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
		described, err := raw.DescribeWorkflowExecution(s.Context(), id, run)
		add("the description of "+id, described, err)
		history := raw.GetWorkflowHistory(s.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			add(fmt.Sprintf("event %d of %s, %s", event.GetEventId(), id, event.GetEventType()), event, err)
		}
	}
	return texts, len(page.GetExecutions())
}

// TestNothingIsKeptInClear gives a Temporal server the secret in every way there is. Neither the server nor the temporal command
// shows it, but to those who have the key or ask the codec server.
func TestNothingIsKeptInClear(t *testing.T) {
	t.Parallel()
	s := start(t)
	keys := codec.Options{Directory: s.keys("a"), KeyID: "a"}
	c, raw, ctx := s.dial(keys), s.connect(), t.Context()
	s.work(c, "everything")

	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "everything", TaskQueue: "everything", StaticSummary: secret, StaticDetails: secret,
		Memo: map[string]any{"memo": secret}}, everything, secret, true)
	if err != nil {
		t.Fatal(err)
	}
	began := run.GetRunID()
	value, err := c.QueryWorkflow(ctx, "everything", "", "ask", secret)
	var answer string
	if err = errors.Join(err, value.Get(&answer)); err != nil || answer != "answer "+secret+secret {
		t.Errorf("a question is answered %q, %v", answer, err)
	}
	for order, want := range map[string]string{secret: "done " + secret, secret + "!": "no order but " + secret} {
		handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: "everything", UpdateName: "order", Args: []any{order}, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		if err != nil {
			answer = err.Error()
		}
		if answer != want {
			t.Errorf("the order %q is answered %q", order, answer)
		}
	}
	schedule, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{ID: "scheduled", Memo: map[string]any{"memo": secret}, TriggerImmediately: true, Paused: true,
		Action: &client.ScheduleWorkflowAction{ID: "scheduled", TaskQueue: "everything", Workflow: failing, Args: []any{secret}, Memo: map[string]any{"memo": secret}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.Describe(ctx); err != nil {
		t.Error(err)
	}
	if err := c.SignalWorkflow(ctx, "everything", "", "tell", secret); err != nil {
		t.Fatal(err)
	}
	err = run.Get(ctx, nil)
	if failure, is := errors.AsType[*temporal.ApplicationError](err); !is || failure.Message() != "failed with "+secret || !strings.Contains(err.Error(), "child failed with "+secret) {
		t.Errorf("the failure is read as %v", err)
	}
	var texts map[string][]byte
	s.await("the runs of the workflow, its child and the Schedule are listed as closed", func() bool {
		page, err := raw.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus != 'Running'"})
		return err == nil && len(page.GetExecutions()) == 4
	})
	texts, workflows := s.kept(raw)
	if len(texts) < 30 || workflows < 4 {
		t.Fatalf("%d events and descriptions of %d workflows", len(texts), workflows)
	}
	for name, text := range texts {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s keeps the secret in clear: %q", name, text)
		}
	}

	// What is read by hand is decrypted too.
	first, err := c.GetWorkflowHistory(ctx, "everything", began, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err != nil || string(first.GetUserMetadata().GetSummary().GetData()) != `"`+secret+`"` {
		t.Errorf("the summary is read as %v, %v", first.GetUserMetadata(), err)
	}

	read, err := codec.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	decrypting, err := codec.NewServer(read, codec.ServerOptions{Address: "127.0.0.1:0"}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(decrypting.Handler())
	defer web.Close()
	show := []string{"workflow", "show", "--workflow-id", "everything", "--output", "json"}
	inClear := base64.StdEncoding.EncodeToString([]byte(`"` + secret + `"`))
	if shown := s.temporal(show...); strings.Contains(shown, secret) || strings.Contains(shown, inClear) || !strings.Contains(shown, "Encoded failure") {
		t.Errorf("temporal workflow show shows the secret:\n%s", shown)
	}
	if shown := s.temporal(append(show, "--codec-endpoint", web.URL)...); !strings.Contains(shown, secret) && !strings.Contains(shown, inClear) {
		t.Errorf("temporal workflow show --codec-endpoint does not show the secret:\n%s", shown)
	}
	// So does Tenon's own command, with a codec server in Temporal's configuration.
	remote, err := codec.Interceptor(codec.NewRemote(web.URL, "", client.DefaultNamespace), true)
	if err != nil {
		t.Fatal(err)
	}
	people := s.connect(grpc.WithChainUnaryInterceptor(remote))
	if value, err = people.QueryWorkflow(ctx, "everything", "", "ask", "?"); err == nil {
		err = value.Get(&answer)
	}
	if err != nil || answer != "answer "+secret+"?" {
		t.Errorf("by the codec server, a question is answered %q, %v", answer, err)
	}
}

// TestWorkersWithoutTheKey runs workers that cannot read what others have encrypted. They give each task back, and say which
// key they lack; no workflow ends. Once the key is added to their Secret, they go on without a restart.
func TestWorkersWithoutTheKey(t *testing.T) {
	t.Parallel()
	s, ctx := start(t), t.Context()
	oldKeys := s.keys("old")
	both := codec.Options{Directory: s.keys("old", "new"), KeyID: "new"}
	newer := s.dial(both)
	s.work(s.dial(codec.Options{}), "no keys")
	s.work(s.dial(codec.Options{Directory: oldKeys, KeyID: "old"}), "old key")
	s.work(newer, "new key")

	begin := func(id, queue, elsewhere string) client.WorkflowRun {
		run, err := newer.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, waiting, secret, elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	// failed awaits that a workflow task of a workflow has failed with a message, and that nothing else has come of it.
	failed := func(id, says string) {
		t.Helper()
		s.await("a workflow task of "+id+" fails, and says "+says, func() bool {
			history := newer.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
			for history.HasNext() {
				event, err := history.Next()
				if err != nil {
					t.Fatal(err)
				}
				if a := event.GetWorkflowTaskFailedEventAttributes(); a != nil {
					if !strings.Contains(a.GetFailure().GetMessage(), says) {
						t.Fatalf("the workflow task of %s failed with %s", id, a.GetFailure().GetMessage())
					}
					return true
				}
			}
			return false
		})
		described, err := newer.DescribeWorkflowExecution(ctx, id, "")
		if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			t.Errorf("workflow %s is %s, %v", id, described.GetWorkflowExecutionInfo().GetStatus(), err)
		}
	}
	withoutKeys, withOld, withNew := begin("without keys", "no keys", ""), begin("with the old key", "old key", ""), begin("with an activity", "new key", "old key")
	failed("without keys", `encrypted with the key "new": this process has no keys`)
	failed("with the old key", `encrypted with the key "new": the key is not in `+oldKeys+", which has old")
	s.await("the activity is given back, and says why", func() bool {
		described, err := newer.DescribeWorkflowExecution(ctx, "with an activity", "")
		if err != nil {
			t.Fatal(err)
		}
		pending := described.GetPendingActivities()
		return len(pending) == 1 && strings.Contains(pending[0].GetLastFailure().GetMessage(), `encrypted with the key "new"`)
	})

	// Other workers take the tasks, and the old ones once they have the key.
	s.addKey(oldKeys, "new")
	s.work(newer, "no keys")
	for _, run := range []client.WorkflowRun{withoutKeys, withOld, withNew} {
		var got string
		if err := run.Get(ctx, &got); err != nil || got != secret {
			t.Errorf("workflow %s: %q, %v", run.GetID(), got, err)
		}
	}

	// What those have written who encrypt with the old key, and those who do not encrypt, everybody reads.
	for name, dialed := range map[string]client.Client{"in clear": s.connect(), "with the old key again": s.dial(codec.Options{Directory: oldKeys, KeyID: "old"})} {
		run, err := dialed.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: name, TaskQueue: "new key"}, waiting, secret, "")
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := newer.GetWorkflow(ctx, run.GetID(), run.GetRunID()).Get(ctx, &got); err != nil || got != secret {
			t.Errorf("a workflow that began %s: %q, %v", name, got, err)
		}
	}

	// A worker without the key refuses to answer for a workflow that it cannot read.
	stop := s.work(newer, "asked")
	asked := begin("asked", "asked", "")
	if err := asked.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	stop()
	s.work(s.dial(codec.Options{}), "asked")
	if _, err := newer.QueryWorkflow(ctx, "asked", "", "ask", "?"); err == nil || !strings.Contains(err.Error(), `key "new": this process has no keys`) {
		t.Errorf("the question is answered %v", err)
	}

	// A person without the key is told so, and of the key.
	if err := s.dial(codec.Options{}).GetWorkflow(ctx, withNew.GetID(), withNew.GetRunID()).Get(ctx, nil); err == nil || !strings.Contains(err.Error(), "--codec-keys") {
		t.Errorf("without keys, a result is read with the error %v", err)
	}
}
