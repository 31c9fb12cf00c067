// Package demo runs Tenon's story on a lab of its own and checks each step: pending pods get nodes; a node is drained by
// hand while a PodDisruptionBudget blocks the drain; everything is scaled to zero, and every node and instance
// disappears. It uses the tenon command as a person would, and checks the results against the API server and the
// simulated cloud only.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/worker"
)

// Run runs the demo. The error names the step that failed.
func Run(ctx context.Context, o Options) error {
	if o.Pods < 20 {
		return fmt.Errorf("--pods %d: must be at least 20", o.Pods)
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "tenon-demo-")
		if err != nil {
			return fmt.Errorf("make a directory for the laboratory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.Dir = dir
	}
	s := &story{Options: o, began: time.Now()}
	s.say("starting a laboratory: Kubernetes, Temporal, a simulated EC2, Tenon")
	l, err := lab.Start(ctx, lab.Options{Dir: o.Dir, Bin: o.Bin, TenonLab: o.TenonLab, Postgres: o.Postgres})
	if err != nil {
		return err
	}
	err = s.tell(ctx, l)
	if err == nil {
		s.summary()
	} else {
		err = fmt.Errorf("%w\n  logs of all processes are in %s", err, o.Dir)
	}
	return errors.Join(err, l.Stop())
}

// tell runs the chapters on a running lab.
func (s *story) tell(ctx context.Context, l *lab.Lab) error {
	config, err := l.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	if s.kube, err = client.New(config, client.Options{Scheme: worker.Scheme()}); err != nil {
		return fmt.Errorf("connect to the laboratory: %w", err)
	}
	s.lab = l
	if s.Postgres {
		s.step("laboratory ready", "Temporal on PostgreSQL at "+l.TemporalAddress())
	} else {
		s.step("laboratory ready", "Temporal UI "+l.UIURL())
	}
	for _, chapter := range []func(context.Context) error{s.scaleOut, s.drainByHand, s.scaleToZero} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}
