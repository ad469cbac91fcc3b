// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
	"github.com/bellwether-dev/bellwether/rollouts"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

const rolloutPlanLong = `Show what a rollout would do if it started now: the upgrade path from each installed
version to the target, the waves with their clusters, and the gates. Nothing is
changed.

OPERATOR is the name of a ManagedOperator on the hub. Use --filename for a
ManagedOperator that is not applied yet. The target is the version of the
ManagedOperator, or --version. Where that is a range, or follows the channel, it is the
version that the hub would choose now, and the output says why. The command reads the
catalog from the registry, at the digest that the hub uses.`

// planOptions are the flags of rollout plan.
type planOptions struct {
	version, channel, file string
	wide                   bool
}

func (a *app) newPlanCommand() *cobra.Command {
	var o planOptions
	var out command.Output
	c := &cobra.Command{
		Use: "plan [OPERATOR]", Short: "Preview a rollout", Long: rolloutPlanLong,
		Example: "  bellwether rollout plan echo --version 1.1.0\n  bellwether rollout plan -f echo.yaml",
		Args:    command.AtMostOne, ValidArgsFunction: a.CompleteFirst(command.ListOperatorNames),
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			o.wide = out.Wide()
			if (len(args) == 0) == (o.file == "") {
				return exit.Hintf("usage: "+c.UseLine(), "set either the name of the operator or --filename")
			}
			h, err := a.Hub()
			if err != nil {
				return err
			}
			operator, err := readPlannedOperator(c.Context(), h, args, o.file)
			if err != nil {
				return err
			}
			return a.printPlan(c.Context(), h, operator, o)
		},
	}
	c.Flags().StringVar(&o.version, "version", "", "The target version. Default: the version of the ManagedOperator.")
	c.Flags().StringVar(&o.channel, "channel", "", "The channel. Default: the channel of the ManagedOperator.")
	c.Flags().StringVarP(&o.file, "filename", "f", "", "A file with a ManagedOperator that is not applied yet.")
	_ = c.MarkFlagFilename("filename", "yaml", "yml", "json")
	out.Add(c, command.OutputWide)
	return c
}

// readPlannedOperator returns the operator to plan for: from the hub if args has a name, otherwise from the file.
func readPlannedOperator(ctx context.Context, h *hub.Client, args []string, file string) (*v1alpha1.ManagedOperator,
	error) {
	if len(args) == 1 {
		return h.Operator(ctx, args[0])
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read operator: %w", err)
	}
	o := &v1alpha1.ManagedOperator{}
	if err := untrusted.UnmarshalStrict(text, o); err != nil {
		return nil, fmt.Errorf("read operator in %s: %w", file, err)
	}
	if o.Kind != "ManagedOperator" {
		return nil, exit.Hintf("use a file with exactly one ManagedOperator", "%s contains kind %q", file, o.Kind)
	}
	if o.Namespace == "" {
		o.Namespace = h.Namespace
	}
	return o, nil
}

// printPlan collects the inputs of the preview from the hub and the catalog, and prints the preview. The order of the
// steps matters: the target needs the waves and the installs, and the holds need the target.
func (a *app) printPlan(ctx context.Context, h *hub.Client, operator *v1alpha1.ManagedOperator, o planOptions) error {
	if o.version != "" {
		operator.Spec.Version = o.version
	}
	if o.channel != "" {
		operator.Spec.Channel = o.channel
	}
	in := PlanInput{Now: a.Now(), Operator: operator, Strategy: rollouts.Defaulted(operator.Spec.Strategy),
		Channel: operator.Spec.Channel}
	var err error
	if in.Clusters, err = hub.ListClusters(ctx, h); err != nil {
		return err
	}
	if err := setPlanWaves(ctx, h, &in); err != nil {
		return err
	}
	if in.Installs, err = hub.ListInstalls(ctx, h, client.ObjectKeyFromObject(operator)); err != nil {
		return err
	}
	list, err := listOperatorRollouts(ctx, h, operator)
	if err != nil {
		return err
	}
	if len(list) > 0 && !list[0].Status.Phase.Ended() {
		in.Running = &list[0]
	}
	if err := a.setPlanTarget(ctx, h, &in, list); err != nil {
		return err
	}
	if err := setPlanHolds(ctx, h, &in); err != nil {
		return err
	}
	a.Say("%s", RenderPlan(in, a.Style(), o.wide))
	return nil
}

// observeClusters converts FleetClusters to the clusters of package rollouts.
func observeClusters(list []v1alpha1.FleetCluster) []rollouts.Cluster {
	out := make([]rollouts.Cluster, 0, len(list))
	for i := range list {
		out = append(out, rollouts.ObserveCluster(&list[i]))
	}
	return out
}

// listOperatorRollouts returns the rollouts of an operator, the newest first.
func listOperatorRollouts(ctx context.Context, h *hub.Client, operator *v1alpha1.ManagedOperator) (
	[]v1alpha1.OperatorRollout, error) {
	scoped := *h
	scoped.Namespace = operator.Namespace
	return scoped.ListRollouts(ctx, client.ObjectKeyFromObject(operator))
}

// setPlanTarget sets the package, the target and the channel of the plan. If the catalog cannot be read from this
// machine, it sets in.Unread and the plan has no upgrade paths. A catalog that does not have the target is an error.
func (a *app) setPlanTarget(ctx context.Context, h *hub.Client, in *PlanInput, list []v1alpha1.OperatorRollout) error {
	catalog := &v1alpha1.OperatorCatalog{}
	key := client.ObjectKey{Namespace: in.Operator.Namespace, Name: in.Operator.Spec.Catalog.Name}
	if err := h.Get(ctx, key, catalog); err != nil {
		return exit.Hint(fmt.Errorf("get catalog %s: %w", key.Name, err),
			"see `"+h.Self+" catalog list -n "+key.Namespace+"`")
	}
	in.catalog = catalog
	in.Package, in.Unread = readPackage(ctx, catalog, in.Operator.Spec.Package)
	if in.Unread != nil {
		if errors.Is(in.Unread, catalogs.ErrNoPackage) {
			return in.Unread
		}
		return nil
	}
	var err error
	// The hub does not choose versions that the OperatorCatalog blocks or that are held.
	blocked := slices.Concat(catalog.Spec.Blocks, operators.HeldBlocks(in.Operator))
	if in.Package, err = in.Package.WithBlocked(catalogs.BlocksOf(blocked, in.Operator.Spec.Package)...); err != nil {
		return err
	}
	if in.Target, err = chooseTarget(h, in, list); err != nil {
		return err
	}
	if in.Channel == "" {
		in.Channel = in.Package.DefaultChannel
	}
	return nil
}

// chooseTarget returns the version that the hub would choose now. It sets in.Reason and in.Waiting if
// the spec has no exact version.
func chooseTarget(h *hub.Client, in *PlanInput, list []v1alpha1.OperatorRollout) (*catalogs.Bundle, error) {
	spec := in.Operator.Spec
	if catalogs.IsExact(spec.Version) {
		return in.Package.Target(spec.Channel, spec.Version)
	}
	input := operators.ChoiceInput{Operator: in.Operator, Offered: in.Package, Rollouts: list}
	for _, p := range groupByInstalledVersion(*in) {
		input.Installed = append(input.Installed, catalogs.Installed{Name: p.bundle, Version: p.version})
	}
	choice, err := operators.ChooseTarget(input)
	if errors.Is(err, operators.ErrNeedsApproval) {
		return nil, exit.Hint(err, fmt.Sprintf("approve it with `%s operator approve %s %s --reason TEXT`, or see "+
			"with --version what its rollout would do", h.Self, in.Operator.Name,
			choice.Waiting.Bundle.VersionString()))
	}
	in.Reason, in.Waiting = choice.Reason, choice.Waiting
	return choice.Bundle, err
}

var errNoDigest = errors.New("the hub has not read the catalog yet")

// readPackage reads a package from the catalog at the digest that the hub uses.
func readPackage(ctx context.Context, catalog *v1alpha1.OperatorCatalog, name string) (*catalogs.Package, error) {
	if catalog.Status.Digest == "" {
		return nil, errNoDigest
	}
	source := catalog.Spec.Source
	if catalog.Status.Source != nil { // the hub read the digest from this source
		source = *catalog.Status.Source
	}
	files, err := oci.NewClient(oci.Options{}).Open(ctx, oci.NewSource(source), catalog.Status.Digest)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return catalogs.ReadPackage(files, name)
}
