package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/top"
	"github.com/tenon-sh/tenon/internal/view"
)

// topFlags are the flags of `tenon top`. Those that eks-node-viewer has too mean the same.
type topFlags struct {
	whyFlags
	provider, kubeconfig, context          string
	resources, labels                      []string
	selector, sort, group, filter, palette string
	noPrices, once                         bool
}

func newTopCommand() *cobra.Command {
	var flags topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch nodes, their pods, fill and price, and what is being done, in the terminal",
		Long: `Shows in the terminal what the worker's page shows: nodes with their pods, fill and price, grouped by NodePool, zone or owner;
pods that wait and why; workflows under way; budgets; what is paused; the last decisions and why. It follows the cluster by
watches. Enter opens what is chosen, with what tenon why says about it; ? lists the keys.

It needs a kubeconfig that may list what the worker lists, and Temporal's address. Prices are read from AWS as the worker reads
them, with your own credentials and region: spot prices of this moment, and the region's price list. Where instance types cannot
be read, the prices are shown that the launches have recorded, and the screen says why.

Without a terminal, or with --once, everything is written once.`,
		Example: `  tenon top
  tenon top --resources cpu,memory,nvidia.com/gpu --node-selector karpenter.sh/nodepool=web
  tenon top --extra-labels topology.kubernetes.io/zone --node-sort cpu=dsc --group none
  tenon top --once
  tenon top -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := program.FromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			options, err := flags.options()
			if err != nil {
				return err
			}
			return flags.run(cmd.Context(), options, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.add(cmd)
	return cmd
}

func (f *topFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	f.temporalFlags.add(set)
	set.StringVarP(&f.output, "output", "o", "", "output format: json")
	set.StringVar(&f.provider, "provider", program.ProviderAWS, "the worker's provider: aws or kwok")
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig (default: as kubectl finds it)")
	set.StringVar(&f.context, "context", "", "the kubeconfig's context (default: its current one)")
	set.StringSliceVar(&f.resources, "resources", []string{"cpu", "memory"}, "resources with a bar, such as cpu,memory,pods,ephemeral-storage,nvidia.com/gpu")
	set.StringSliceVar(&f.labels, "extra-labels", nil, "labels of nodes with a column of their own")
	set.StringVar(&f.selector, "node-selector", "", "only nodes with these labels, such as karpenter.sh/nodepool=web")
	set.StringVar(&f.sort, "node-sort", "", "order of the nodes: creation, a column or a label, with =asc or =dsc")
	set.StringVar(&f.group, "group", "", "group nodes by "+strings.Join(top.Groupings(), ", ")+" (default: "+top.Groupings()[0]+")")
	set.StringVar(&f.filter, "filter", "", "only nodes that match words and fields, such as zone:us-east-1a state:Closed")
	set.BoolVar(&f.noPrices, "disable-pricing", false, "show no prices, and read none")
	set.StringVar(&f.palette, "style", "", "three colours, for good, ok and bad, such as #2E91D2,#FFFF00,#D55E00 (default: those of the terminal; NO_COLOR turns them off)")
	set.BoolVar(&f.once, "once", false, "write everything once instead of watching")
}

// options checks the flags.
func (f *topFlags) options() (options top.Options, err error) {
	options = top.Options{Resources: f.resources, Labels: f.labels, Group: f.group, Filter: f.filter, NoPrices: f.noPrices}
	if err := jsonOnly(f.output); err != nil {
		return options, err
	}
	if f.selector != "" {
		if options.Selector, err = labels.Parse(f.selector); err != nil {
			return options, fmt.Errorf("--node-selector: %w", err)
		}
	}
	if f.sort != "" {
		if options.Sort, err = top.ParseSort(f.sort); err != nil {
			return options, fmt.Errorf("--node-sort %w", err)
		}
	}
	if f.group != "" && !slices.Contains(top.Groupings(), f.group) {
		return options, fmt.Errorf("--group %q: must be one of %v", f.group, top.Groupings())
	}
	if options.Colors, err = top.ParseColors(f.palette); err != nil {
		return options, fmt.Errorf("--style %w", err)
	}
	if f.provider != program.ProviderAWS && f.provider != program.ProviderKwok {
		return options, program.CheckProvider(f.provider)
	}
	if f.cluster == "" {
		return options, errors.New("which cluster? Give --cluster or TENON_CLUSTER, the name that its worker has")
	}
	return options, nil
}

// restConfig returns the configuration of the API server's client.
func (f *topFlags) restConfig() (*rest.Config, error) {
	if f.kubeconfig == "" && f.context == "" {
		found, err := config.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("find the cluster (KUBECONFIG): %w", err)
		}
		return found, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	found, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (--kubeconfig, --context): %w", err)
	}
	return found, nil
}

// run watches, or writes everything once.
func (f *topFlags) run(ctx context.Context, options top.Options, out, progress io.Writer) error {
	kubernetes, err := f.restConfig()
	if err != nil {
		return err
	}
	klog.SetLogger(logr.Discard()) // its lines would go over the screen
	source, err := f.open(ctx, kubernetes)
	if err != nil {
		return err
	}
	defer source.close()
	options.Why = source.why
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return source.run(running) })
	screen, watches := out.(*os.File)
	if watches = watches && !f.once && f.output == "" && term.IsTerminal(int(screen.Fd())); watches {
		err = f.watch(running, source, options)
	} else {
		err = f.write(running, source, options, out, progress)
	}
	stop()
	if ended := group.Wait(); err == nil && !errors.Is(ended, context.Canceled) {
		err = ended
	}
	return err
}

// drawEvery is how often the screen looks at what the watches have brought.
const drawEvery = time.Second

// watch shows the screen until a person quits, or ctx ends.
func (f *topFlags) watch(ctx context.Context, source *topSource, options top.Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shown := tea.NewProgram(top.New(options), tea.WithContext(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer shown.Quit()
		builder := view.NewBuilder(f.cluster)
		looks := time.NewTicker(drawEvery)
		defer looks.Stop()
		synced := make(chan error, 1)
		go func() { synced <- source.synced(ctx) }()
		for known := false; ; {
			if known {
				shown.Send(source.look(ctx, builder))
			} else {
				shown.Send(source.waiting())
			}
			select {
			case err := <-synced:
				if err != nil {
					return err
				}
				known, synced = true, nil
			case <-looks.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	_, err := shown.Run()
	stop()
	if ended := group.Wait(); ended != nil && !errors.Is(ended, context.Canceled) {
		return ended
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// write writes everything once.
func (f *topFlags) write(ctx context.Context, source *topSource, options top.Options, out, progress io.Writer) error {
	slow := time.AfterFunc(2*time.Second, func() { _, _ = fmt.Fprintln(progress, "reading the cluster and what Temporal has recorded ...") })
	defer slow.Stop()
	if err := source.synced(ctx); err != nil {
		return err
	}
	source.readAll(ctx)
	look := source.look(ctx, view.NewBuilder(f.cluster))
	if f.output == "json" {
		return writeJSON(out, top.Selected(look, options))
	}
	width := 0
	if screen, is := out.(*os.File); is {
		if columns, _, err := term.GetSize(int(screen.Fd())); err == nil {
			width = columns
		}
	}
	_, err := lipgloss.Fprint(out, top.All(look, options, width))
	return err
}
