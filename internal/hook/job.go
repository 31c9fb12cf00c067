package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// lookAtJob is the pause between two looks at a Job.
	lookAtJob = 2 * time.Second
	// keepJob is for how many seconds a finished Job is kept, unless its template says otherwise.
	keepJob = 3600
	// hookLabel on a Job names its hook.
	hookLabel = "tenon.sh/hook"
)

// runJob creates a hook's Job unless it exists, and waits until it has ended.
func (r *Runner) runJob(ctx context.Context, h karpv1.Hook, about About) error {
	key := client.ObjectKey{Namespace: h.Job.Namespace, Name: jobName(about)}
	for {
		var job batchv1.Job
		err := r.jobs.Get(ctx, key, &job)
		if apierrors.IsNotFound(err) {
			err = r.createJob(ctx, h, about, key.Name)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("run Job %s: %w", key, err)
		}
		for _, condition := range job.Status.Conditions {
			if condition.Status != corev1.ConditionTrue {
				continue
			}
			switch condition.Type {
			case batchv1.JobComplete:
				return nil
			case batchv1.JobFailed:
				return fmt.Errorf("run Job %s: %s: %s", key, condition.Reason, condition.Message)
			}
		}
		select {
		case <-time.After(lookAtJob):
		case <-ctx.Done():
			return fmt.Errorf("run Job %s: %w", key, context.Cause(ctx))
		}
	}
}

// jobName is the same for every try of one run, and another for every node.
func jobName(about About) string {
	sum := sha256.Sum256([]byte(about.key()))
	return "tenon-" + about.Hook + "-" + hex.EncodeToString(sum[:6])
}

// createJob creates a hook's Job from the template of its CronJob.
func (r *Runner) createJob(ctx context.Context, h karpv1.Hook, about About, name string) error {
	var from batchv1.CronJob
	if err := r.jobs.Get(ctx, client.ObjectKey{Namespace: h.Job.Namespace, Name: h.Job.CronJob}, &from); err != nil {
		return fmt.Errorf("get CronJob %s/%s: %w", h.Job.Namespace, h.Job.CronJob, err)
	}
	template := from.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: h.Job.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	if job.Labels == nil {
		job.Labels = map[string]string{}
	}
	job.Labels[hookLabel] = about.Hook
	if job.Spec.TTLSecondsAfterFinished == nil {
		job.Spec.TTLSecondsAfterFinished = new(int32(keepJob))
	}
	if job.Spec.ActiveDeadlineSeconds == nil {
		job.Spec.ActiveDeadlineSeconds = new(int64(h.Within().Seconds()))
	}
	pod := &job.Spec.Template.Spec
	if h.Job.OnNode {
		pod.NodeName = about.Node // past the kube-scheduler, which puts nothing on a cordoned node
	}
	for i := range pod.Containers {
		pod.Containers[i].Env = append(pod.Containers[i].Env, environment(about)...)
	}
	if err := r.jobs.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create it: %w", err)
	}
	return nil
}

// environment are the variables that tell a Job about the node.
func environment(about About) []corev1.EnvVar {
	deadline := ""
	if !about.Deadline.IsZero() {
		deadline = about.Deadline.UTC().Format(time.RFC3339)
	}
	var all []corev1.EnvVar
	for _, v := range [][2]string{{"TENON_HOOK", about.Hook}, {"TENON_WHEN", string(about.When)}, {"TENON_CLUSTER", about.Cluster}, {"TENON_NODE", about.Node}, {"TENON_NODECLAIM", about.Claim},
		{"TENON_NODEPOOL", about.NodePool}, {"TENON_PROVIDER_ID", about.ProviderID}, {"TENON_REASON", about.Reason}, {"TENON_DEADLINE", deadline}} {
		all = append(all, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
	return all
}
